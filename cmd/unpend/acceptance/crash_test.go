package acceptance

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// crash is one case of R9: the executor is killed at a write of a repartition. Without
// a write it is left alone.
type crash struct {
	outcome string
	faults  sim.Faults // of MIG manager
	write   string
	after   bool
}

func (c crash) String() string {
	when := "before"
	if c.after {
		when = "after"
	}
	return c.outcome + "/" + strings.NewReplacer(" ", "-", "/", "-", "#", "").Replace(c.write) + "/" + when
}

// restartIn is what a restarted executor has to bring a plan to its end.
const restartIn = time.Minute

// everyKill is odd, so that of the kills that stand for all some come before their write and
// some after it.
const everyKill = 9

// promiseR09: kill -9 before and after every write of a repartition, also of those of
// the way back, which a MIG manager that fails leads to; and of those to layouts that
// are a team's own.
func promiseR09(t *testing.T) {
	needsControlPlane(t)
	lanes := controlplane.Of(2, 3)
	outcomes := []crash{{outcome: "succeeds"}, {outcome: "fails", faults: sim.Faults{Fail: true}}}
	var s, own crashes
	var running sync.WaitGroup
	running.Go(func() { s.onLanes(t, lanes, outcomes) })
	running.Go(func() {
		own.kills = func(write string) bool { return strings.Contains(write, "configmaps") }
		t.Run("own layouts", func(t *testing.T) { own.onOne(t, newOwnLane(t), outcomes) })
	})
	running.Wait()
	worst := max(s.worst["recovery"], own.worst["recovery"])
	report(t, s.passed+own.passed, s.of+own.of, fmt.Sprintf("worst recovery %.1f s; %d of them at writes to a team's own layouts", worst.Seconds(), own.of))
}

// crashes is what the lanes of R9 share.
type crashes struct {
	tally
	kills func(write string) bool // which are cases; nil: all
	work  chan crash
}

// onLanes lists the cases of each outcome on a lane of its own, and plays them on all.
func (s *crashes) onLanes(t *testing.T, lanes int, outcomes []crash) {
	s.work = make(chan crash, 1000)
	var listed, running sync.WaitGroup
	listed.Add(len(outcomes))
	for n := range lanes {
		running.Go(func() {
			t.Run(fmt.Sprintf("lane %d", n), func(t *testing.T) {
				done := sync.OnceFunc(listed.Done)
				if n < len(outcomes) {
					defer done()
				}
				l := newLane(t)
				if n < len(outcomes) {
					t.Run(outcomes[n].outcome, func(t *testing.T) { s.list(t, l, outcomes[n]) })
					done()
				}
				s.play(t, l)
			})
		})
	}
	listed.Wait()
	close(s.work)
	running.Wait()
}

// onOne lists and plays all on one lane.
func (s *crashes) onOne(t *testing.T, l *lane, outcomes []crash) {
	s.work = make(chan crash, 1000)
	for _, o := range outcomes {
		t.Run(o.outcome, func(t *testing.T) { s.list(t, l, o) })
	}
	close(s.work)
	s.play(t, l)
}

// list carries the plan out with nothing in its way: its writes are the cases.
func (s *crashes) list(t *testing.T, l *lane, c crash) {
	r := l.play(t, c)
	t.Logf("%d writes in %.1f s: %s", len(r.writes), r.took.Seconds(), strings.Join(r.writes, ", "))
	var cases []crash
	for _, write := range r.writes {
		if s.kills != nil && !s.kills(write) {
			continue
		}
		for _, after := range []bool{false, true} {
			cases = append(cases, crash{c.outcome, c.faults, write, after})
		}
	}
	for _, k := range controlplane.Some(cases, everyKill) {
		s.work <- k
	}
}

// play plays cases on a lane until there are no more.
func (s *crashes) play(t *testing.T, l *lane) {
	var cells []*cell
	for c := range s.work {
		passed := false
		// A write that others got in the way of is made again, so their number is
		// chance: a run that has fewer says nothing.
		for try := 0; try < 3 && !passed; try++ {
			var r played
			ok := t.Run(c.String(), func(t *testing.T) { r = l.play(t, c) })
			if r.cell != nil {
				cells = append(cells, r.cell)
			}
			s.took("recovery", r.took)
			if !ok {
				break
			}
			passed = r.killed
		}
		s.add(passed)
	}
	s.wrong(l.evictedOnce(t, cells))
}

// played is what came of a case.
type played struct {
	*cell
	writes []string
	killed bool
	took   time.Duration // from the start, or the restart, to the end of the plan
}

// play has a plan carried out, and kills its executor where the case says so. A kubelet starts it
// again, also where it ends by itself: on a busy machine it may lose its lease.
func (l *lane) play(t *testing.T, c crash) (r played) {
	t.Helper()
	if l.own {
		l.setLayouts(t)
	}
	r.cell = l.newCell(t)
	l.stack.SetFaults(r.node, c.faults)
	r.approve(t)
	config := executorConfig(t, r.ns, "evict: 30s, leave: 30s, manager: 40s, wedge: 30s, run: 40s")
	proxy := newFaultProxy(t, l, r.ns, "executor-"+r.ns)
	started, killed := make(chan struct{}), make(chan struct{})
	var k *kubelet
	if c.write != "" {
		proxy.set(proxy.killAt(c.write, c.after, func() {
			<-started
			proxy.set(nil)
			k.kill()
			close(killed)
		}))
	}
	began := time.Now()
	k = keepRunning(t, config, proxy, func() {})
	close(started)
	if c.write != "" {
		if r.killed = r.endsOr(t, killed); r.killed {
			began = time.Now()
		}
	}
	status := r.ends(t, restartIn)
	r.took, r.writes = time.Since(began), proxy.made()
	r.outcome(t, status, c.faults.Fail)
	k.stop(t)
	return r
}

// endsOr waits for the executor to be killed, or for the plan to end without.
func (c *cell) endsOr(t *testing.T, killed <-chan struct{}) bool {
	t.Helper()
	dead := false
	controlplane.Eventually(t, 2*time.Minute, "the executor is killed", func() (bool, string) {
		select {
		case <-killed:
			dead = true
			return true, ""
		default:
		}
		now, err := c.store().Get(t.Context(), c.rem.Name)
		must(t, err)
		return now.Status.Phase.Ended(), string(now.Status.Phase)
	})
	if !dead { // by the very last write, perhaps
		select {
		case <-killed:
			dead = true
		case <-time.After(time.Second):
		}
	}
	return dead
}

// outcome wants what a plan has to come to, with a crash or without.
func (c *cell) outcome(t *testing.T, status v1alpha1.RemediationStatus, fails bool) {
	t.Helper()
	config := c.settled(t)
	if c.own {
		c.layoutsLeft(t, config, fails)
	}
	if status.Evicted != 3 {
		t.Errorf("%d evicted, want 3", status.Evicted)
	}
	if fails {
		if status.Phase != v1alpha1.Failed || config != "all-1g.5gb" || !strings.Contains(status.Message, "says failed") {
			t.Errorf("%s: %s, config %s", status.Phase, status.Message, config)
		}
		c.running(t)
		return
	}
	if status.Phase != v1alpha1.Succeeded || config == "all-1g.5gb" || !strings.HasPrefix(status.Pod, c.ns+"/training-") {
		t.Errorf("%s: %s, config %s, pod %s", status.Phase, status.Message, config, status.Pod)
	}
}
