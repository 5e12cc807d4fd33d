package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/testdata/controlplane"
)

// unhurried deadlines are never reached.
const unhurried = "evict: 60s, leave: 60s, manager: 60s, wedge: 50s, run: 60s"

// handover is a way in which a leader is lost in the middle of a plan: by the request
// that cordons the node.
type handover struct {
	name string
	lose func(x *process, p *faultProxy, w http.ResponseWriter, r *http.Request)
	// back gives it back after a while, if at all.
	after time.Duration
	back  func(x *process, p *faultProxy)
}

func handovers() []handover {
	heal := func(_ *process, p *faultProxy) { p.set(nil) }
	return []handover{
		{"killed", func(x *process, p *faultProxy, _ http.ResponseWriter, r *http.Request) {
			p.up.ServeHTTP(httptest.NewRecorder(), r)
			x.kill()
			panic(http.ErrAbortHandler)
		}, 0, nil},
		{"unanswered", func(_ *process, p *faultProxy, _ http.ResponseWriter, r *http.Request) {
			p.up.ServeHTTP(httptest.NewRecorder(), r)
			p.setCut(always(hang))
			panic(http.ErrAbortHandler)
		}, 30 * time.Second, heal},
		{"stopped", func(x *process, p *faultProxy, w http.ResponseWriter, r *http.Request) {
			p.set(nil)
			x.signal(syscall.SIGSTOP)
			p.up.ServeHTTP(w, r) // it finds the answer when it wakes up
		}, 20 * time.Second, func(x *process, _ *faultProxy) { x.signal(syscall.SIGCONT) }},
		{"refused", func(_ *process, p *faultProxy, w http.ResponseWriter, r *http.Request) {
			p.up.ServeHTTP(httptest.NewRecorder(), r)
			p.setCut(always(reset))
			reset(w, r)
		}, 30 * time.Second, heal},
	}
}

// promiseR24: a leader that is gone, cut off or stopped is replaced within 20 s, and
// there is one writer at any time.
func promiseR24(t *testing.T) {
	needsControlPlane(t)
	var s tally
	cases := controlplane.Some(handovers(), 2)
	onLanes(t, len(cases), cases, func(t *testing.T, l *lane, h handover) { // all they do is wait
		s.add(t.Run(h.name, func(t *testing.T) { s.took("hand-over", h.play(t, l)) }))
	})
	report(t, s.passed, len(cases), fmt.Sprintf("one writer at any time, worst hand-over %.1f s", s.worst["hand-over"].Seconds()))
}

func (h handover) play(t *testing.T, l *lane) time.Duration {
	c := l.newCell(t)
	config := executorConfig(t, c.ns, unhurried)
	first, second := newFaultProxy(t, l, c.ns, "first-"+c.ns), newFaultProxy(t, l, c.ns, "second-"+c.ns)
	x := startExecutor(t, "first", config, first)
	c.led(t, "first")
	waits := second.sees("/leases/" + executor.LeaderLease)
	startExecutor(t, "second", config, second)
	<-waits
	lost := make(chan time.Time, 1)
	first.set(func(a *asked) http.HandlerFunc {
		if a.write != "PATCH nodes #1" {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			lost <- time.Now()
			h.lose(x, first, w, r)
		}
	})
	c.approve(t)
	var at time.Time
	select {
	case at = <-lost:
	case <-time.After(time.Minute):
		t.Fatal("the leader has not come to the cordon")
	}
	if h.back != nil {
		<-time.After(h.after)
		h.back(x, first)
		if code := x.exits(t, 20*time.Second); code != exitError {
			t.Errorf("the leader that was has exit code %d", code)
		}
	}
	c.outcome(t, c.ends(t, restartIn), false)
	l.evictedOnce(t, []*cell{c})
	c.monotone(t, "first", "second")
	took := l.oneWriter(t, first.agent, second.agent).Sub(at)
	if took > 20*time.Second {
		t.Errorf("the hand-over took %s", took)
	}
	return took
}

// sees is closed at the first request for a path that ends so.
func (p *faultProxy) sees(suffix string) <-chan struct{} {
	seen := make(chan struct{})
	once := sync.OnceFunc(func() { close(seen) })
	p.set(func(a *asked) http.HandlerFunc {
		if strings.HasSuffix(a.URL.Path, suffix) {
			once()
		}
		return nil
	})
	return seen
}

// led waits until somebody leads.
func (c *cell) led(t *testing.T, by string) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, by+" leads", func() (bool, string) {
		l, err := c.Client().CoordinationV1().Leases(c.ns).Get(t.Context(), executor.LeaderLease, metav1.GetOptions{})
		return err == nil && ptr.Deref(l.Spec.HolderIdentity, "") == by, fmt.Sprint(err)
	})
}

// monotone wants the journal to tell of these leaders, one after the other, each with
// a generation of its own.
func (c *cell) monotone(t *testing.T, leaders ...string) {
	t.Helper()
	var told []string
	generation := int64(-1)
	for _, e := range c.rem.Status.Journal {
		if n := len(told); n > 0 && told[n-1] == e.Leader && generation == e.Generation {
			continue
		}
		if e.Generation <= generation {
			t.Errorf("%s by %s of generation %d, after generation %d", e.Step, e.Leader, e.Generation, generation)
		}
		told, generation = append(told, e.Leader), e.Generation
	}
	if !slices.Equal(told, leaders) {
		t.Errorf("the journal is by %v, want %v", told, leaders)
	}
}

// writesBy are an agent's writes that the API server has carried out. Who leads is
// agreed on in the lease: that is none.
func (l *lane) writesBy(t *testing.T, agent string) []controlplane.AuditEvent {
	t.Helper()
	return slices.DeleteFunc(l.AuditEvents(t), func(e controlplane.AuditEvent) bool {
		writes := slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && e.ResponseStatus.Code < 300
		return !writes || e.UserAgent != agent || e.ObjectRef.Name == executor.LeaderLease || strings.HasSuffix(e.ObjectRef.Resource, "reviews") || e.ObjectRef.Resource == "events"
	})
}

// oneWriter wants the first to have written nothing more once the second has begun,
// and says when that was.
func (l *lane) oneWriter(t *testing.T, first, second string) time.Time {
	t.Helper()
	before, after := l.writesBy(t, first), l.writesBy(t, second)
	if len(before) == 0 || len(after) == 0 {
		t.Fatalf("%d writes by the first, %d by the second", len(before), len(after))
	}
	byTime := func(a, b controlplane.AuditEvent) int { return a.Received.Compare(b.Received) }
	last, began := slices.MaxFunc(before, byTime), slices.MinFunc(after, byTime).Received
	if last.Received.After(began) {
		t.Errorf("%s %s %s %s after the second has begun", last.Verb, last.ObjectRef.Resource, last.ObjectRef.Name, last.Received.Sub(began))
	}
	return began
}
