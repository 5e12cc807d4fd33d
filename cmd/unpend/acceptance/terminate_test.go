package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

// terminations are the moments of R32: each write of a plan that is carried out, and
// of the way back those that come after MIG manager has failed.
func terminations() []crash {
	journal := func(from, to int) (out []string) {
		for n := from; n <= to; n++ {
			out = append(out, fmt.Sprintf("PUT remediations/status #%d", n))
		}
		return out
	}
	there := append(journal(1, 13), "POST leases #2", "PATCH nodes #1", "POST pods/eviction #1", "POST pods/eviction #2", "POST pods/eviction #3", "PATCH nodes #2", "PATCH nodes #3", "DELETE leases #1")
	back := append(journal(10, 16), "PATCH nodes #3", "PATCH nodes #4", "DELETE leases #1")
	var out []crash
	for _, write := range there {
		out = append(out, crash{outcome: "succeeds", write: write})
	}
	for _, write := range back {
		out = append(out, crash{outcome: "fails", faults: sim.Faults{Fail: true}, write: write})
	}
	return out
}

// promiseR32: SIGTERM during each step of a plan, on the way there and on the way back:
// the process ends well, and the next leader goes on.
func promiseR32(t *testing.T) {
	needsControlPlane(t)
	var s tally
	cases := controlplane.Some(terminations(), everyKill)
	onLanes(t, 3, cases, func(t *testing.T, l *lane, c crash) {
		s.add(t.Run(c.outcome+"/"+c.write, func(t *testing.T) { l.terminate(t, c, &s) }))
	})
	report(t, s.passed, len(cases), fmt.Sprintf("worst exit %.1f s, worst plan after it %.1f s", s.worst["exit"].Seconds(), s.worst["plan"].Seconds()))
}

// terminate ends the leader by SIGTERM at a write, and starts the next one.
func (l *lane) terminate(t *testing.T, c crash, s *tally) {
	r := l.newCell(t)
	l.stack.SetFaults(r.node, c.faults)
	config := executorConfig(t, r.ns, unhurried)
	proxy := newFaultProxy(t, l, r.ns, "first-"+r.ns)
	x := startExecutor(t, "first", config, proxy)
	r.led(t, "first")
	told := make(chan time.Time, 1)
	proxy.set(func(a *asked) http.HandlerFunc {
		if a.write != c.write {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			told <- time.Now()
			x.signal(syscall.SIGTERM)
			// The API server carries out what it was asked, though nobody waits for its answer:
			// else the audit log has the deletion of a pod, and not that the eviction came to be.
			proxy.up.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
		}
	})
	r.approve(t)
	select {
	case at := <-told:
		if code := x.exits(t, 10*time.Second); code != exitDone {
			t.Errorf("exit code %d", code)
		}
		s.took("exit", time.Since(at))
	case <-time.After(time.Minute):
		t.Fatalf("%s was not made", c.write)
	}
	began := time.Now()
	startExecutor(t, "second", config, newFaultProxy(t, l, r.ns, "second-"+r.ns))
	status := r.ends(t, restartIn)
	s.took("plan", time.Since(began))
	r.outcome(t, status, c.faults.Fail)
	l.evictedOnce(t, []*cell{r})
}
