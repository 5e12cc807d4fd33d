package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The moments that are no write of a drain.
const (
	waitsForBudget = "while a budget says no"
	waitsForServer = "while the server says later"
)

// promiseR23: the kill switch is turned in the middle of a drain: between any two
// writes of it, and while a budget keeps it waiting. By the API server's audit log,
// nothing is written from then on but what takes the plan back. That is no failure: the
// breaker stays closed, though it would open at the first. Turned off again, nothing
// starts by itself that was stopped.
func promiseR23(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	moments := controlplane.Some([]string{waitsForBudget, "POST leases #2", "PATCH nodes #1", "POST pods/eviction #1", "POST pods/eviction #2", "POST pods/eviction #3", waitsForServer, "PATCH nodes #2"}, 3)
	held, worst := 0, stopped{}
	var quiet string
	for _, m := range moments {
		ok := t.Run(strings.NewReplacer(" ", "-", "/", "-", "#", "").Replace(m), func(t *testing.T) {
			c, s := l.stopAt(t, m)
			worst.further, worst.last, worst.undone = max(worst.further, s.further), max(worst.last, s.last), max(worst.undone, s.undone)
			if m == waitsForBudget {
				quiet = c.switchedOff(t)
			}
		})
		if ok {
			held++
		}
	}
	report(t, held, len(moments), fmt.Sprintf("at most %d further writes, the last %.0f ms after the switch; all taken back within %.1f s; %s", worst.further, float64(worst.last.Milliseconds()), worst.undone.Seconds(), quiet))
}

// stopped is what came of turning the switch.
type stopped struct {
	further int           // writes that were no part of the way back
	last    time.Duration // after the switch, of the last of those
	undone  time.Duration // until the plan had ended
}

// stopAt turns the switch at a moment of a plan, and judges by the audit log.
func (l *lane) stopAt(t *testing.T, moment string) (*cell, stopped) {
	t.Helper()
	c := l.newCell(t)
	setGuards(t, l, c.ns, "coolDown: 0s\nbreaker: {failures: 1}") // or what comes after waits for an hour
	c.approve(t)
	proxy := newFaultProxy(t, l, c.ns, "executor-"+c.ns)
	b := &bodies{}
	turned := make(chan time.Time, 1)
	turn := func() { turned <- c.paused(t, true) }
	budget := false
	switch moment {
	case waitsForBudget:
		budget = true
		proxy.set(b.keep(proxy.onAnswer("POST pods/eviction #1", func() { c.budget(t) })))
	case waitsForServer:
		proxy.set(b.keep(laterAt("POST pods/eviction #2", turn)))
	default:
		proxy.set(b.keep(proxy.onAnswer(moment, turn)))
	}
	startExecutor(t, "executor-0", executorConfig(t, c.ns, ""), proxy)
	if budget {
		controlplane.Eventually(t, time.Minute, "the plan waits for the budget", func() (bool, string) { // nothing changes while it does
			now, err := c.store().Get(t.Context(), c.rem.Name)
			must(t, err)
			return slices.ContainsFunc(now.Status.Journal, func(e v1alpha1.Entry) bool {
				return strings.Contains(string(e.Step), "evict/") && e.Ended == nil && time.Since(e.Began.Time) > 2*time.Second
			}), now.Status.Progress
		})
		turn()
	}
	var at time.Time
	select {
	case at = <-turned:
	case <-time.After(2 * time.Minute):
		t.Fatal("the moment has not come")
	}
	status := c.ends(t, time.Minute)
	s := stopped{undone: status.Ended.Sub(at)}
	if status.Phase != v1alpha1.Stopped || !strings.Contains(status.Message, "halted: configmap "+c.ns+"/"+guard.ConfigMap+" says paused") {
		t.Errorf("%s: %s", status.Phase, status.Message)
	}
	if config := c.settled(t); config != "all-1g.5gb" {
		t.Errorf("the node is left with %s", config)
	}
	c.running(t)
	l.judge(t, c, b, at, &s)
	return c, s
}

// judge counts what the executor wrote after the switch, by the audit log; the bodies
// that the proxy kept tell a way back from a way there.
func (l *lane) judge(t *testing.T, c *cell, b *bodies, at time.Time, s *stopped) {
	t.Helper()
	for _, e := range l.AuditEvents(t) {
		own := e.UserAgent == "executor-"+c.ns && !e.Received.Before(at)
		if !own || e.Verb == "get" || e.Verb == "list" || e.Verb == "watch" || e.ResponseStatus.Code >= 300 {
			continue
		}
		switch what := e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource; {
		case what == "remediations/status", what == "events/", strings.HasSuffix(what, "reviews/"), what == "leases/" && e.ObjectRef.Name == "unpend-executor":
			continue // the journal, and what changes nothing
		case e.Verb == "delete" && what == "leases/": // the lock is given back
			continue
		case e.Verb == "patch" && what == "nodes/": // judged by its body
			continue
		}
		s.further++
		s.last = max(s.last, e.Answered.Sub(at))
		t.Errorf("written %s after the switch: %s %s", e.Received.Sub(at), e.Verb, e.RequestURI)
	}
	for _, body := range b.after(at) {
		if !strings.Contains(body, `"unschedulable":null`) && !strings.Contains(body, `"nvidia.com/mig.config":"all-1g.5gb"`) {
			s.further++
			t.Errorf("the node was written after the switch: %s", body)
		}
	}
}

// paused turns the switch and says when the API server had it.
func (c *cell) paused(t *testing.T, on bool) time.Time {
	t.Helper()
	patch := fmt.Appendf(nil, `{"data":{%q:"%v"}}`, guard.PausedKey, on)
	_, err := c.Client().CoreV1().ConfigMaps(c.ns).Patch(t.Context(), guard.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Error(err) // also called by the proxy
	}
	return time.Now()
}

// budget lets no holder more go.
func (c *cell) budget(t *testing.T) {
	t.Helper()
	least := intstr.FromInt32(3)
	_, err := c.Client().PolicyV1().PodDisruptionBudgets(c.ns).Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "inference"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err) // also called by the proxy
	}
}

// laterAt has the API server say to a write that it is to be made 3 s later, once.
func laterAt(write string, do func()) fault {
	return func(a *asked) http.HandlerFunc {
		if a.write != write {
			return nil
		}
		return func(w http.ResponseWriter, _ *http.Request) {
			do()
			w.Header().Set("Retry-After", "3")
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		}
	}
}

// switchedOff turns the switch off again: what was stopped does not start by itself,
// what is approved again does. It says so.
func (c *cell) switchedOff(t *testing.T) string {
	t.Helper()
	const long = 8 * time.Second
	must(t, c.Client().PolicyV1().PodDisruptionBudgets(c.ns).Delete(t.Context(), "all", metav1.DeleteOptions{}))
	before, off := c.rem.ResourceVersion, c.paused(t, false)
	controlplane.Eventually(t, 2*long, "a while passes", func() (bool, string) {
		now, err := c.store().Get(t.Context(), c.rem.Name)
		must(t, err)
		if now.ResourceVersion != before {
			t.Fatalf("the plan that was stopped goes on: %s %s", now.Status.Phase, now.Status.Message)
		}
		return time.Since(off) > long, ""
	})
	c.record(t, diagnosis.RepartitionGPU)
	c.approve(t)
	if status := c.ends(t, time.Minute); status.Phase != v1alpha1.Succeeded {
		t.Errorf("approved again: %s: %s", status.Phase, status.Message)
	}
	return fmt.Sprintf("switched off, nothing began in %.0f s; approved again, it was carried out", long.Seconds())
}

// bodies are what was sent to nodes, and when.
type bodies struct {
	mu   sync.Mutex
	at   map[time.Time]string
	next fault
}

// keep notes every patch of a node before the next fault sees the request.
func (b *bodies) keep(next fault) fault {
	b.next, b.at = next, map[time.Time]string{}
	return func(a *asked) http.HandlerFunc {
		if a.Method == http.MethodPatch && strings.Contains(a.URL.Path, "/nodes/") {
			body, err := io.ReadAll(a.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			a.Body = io.NopCloser(bytes.NewReader(body))
			b.mu.Lock()
			b.at[time.Now()] = string(body)
			b.mu.Unlock()
		}
		if b.next == nil {
			return nil
		}
		return b.next(a)
	}
}

func (b *bodies) after(at time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, t := range slices.SortedFunc(maps.Keys(b.at), time.Time.Compare) {
		if t.After(at) {
			out = append(out, b.at[t])
		}
	}
	return out
}

// onAnswer does something once the API server has answered a write, before the
// process hears of it.
func (p *faultProxy) onAnswer(write string, do func()) fault {
	return func(a *asked) http.HandlerFunc {
		if a.write != write {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			p.up.ServeHTTP(answer, r)
			do()
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			io.Copy(w, answer.Body)
		}
	}
}
