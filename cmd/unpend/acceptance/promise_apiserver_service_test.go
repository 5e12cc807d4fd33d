package acceptance

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/testdata/controlplane"
)

const (
	jobEvery  = 10 * time.Second // one begins to wait, and another has ended
	jobsAtAll = 3                // that wait
	// streamsEvery is how often all watches end: a reflector that was left alone for two minutes
	// begins again without a pause (client-go, tools/cache).
	streamsEvery = 3 * time.Minute
	// goroutinesMore is what idle connections hold, 25 a host of two goroutines each
	// (apimachinery, util/net).
	goroutinesMore = 2 * 25
)

// service rolls the dice for who watches and diagnoses, while Jobs come and go.
func (s *troubles) service(t *testing.T) {
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	n := newNATS(t)
	n.start(t)
	p := proxyTo(t, c.Config(), "unpend/troubled")
	r := &rolled{observer: observeBy(t, c, p.kubeconfig, fmt.Sprintf("{url: %q}", n.url())), proxy: p}
	r.says(t, "ok\n", time.Minute)
	base := r.churn(t, "calm", lookFor, nil)
	r.explains(t, r.waiting, calmIn)
	before := r.figure(t, "go_goroutines")
	long, percent, _ := randomly()
	most := r.churn(t, "troubled", long, dice(percent, 2))
	over := time.Now()
	r.says(t, "ok\n", calmIn)
	r.explains(t, r.waiting, calmIn)
	resolved(t, n.url(), clusterUID(t, c), r.over)
	known(t, n.url(), clusterUID(t, c), r.waiting)
	took := time.Since(over)
	once(t, r.observer, r.waiting, nil)
	if ratio := float64(most) / float64(base); took > calmIn || ratio > 2 || base == 0 {
		t.Errorf("all is told %s after; %d requests in %s, undisturbed %d", took, most, lookFor, base)
	}
	after := r.figure(t, "go_goroutines")
	if after > before+goroutinesMore {
		t.Errorf("%.0f goroutines, %.0f before", after, before)
	}
	for _, of := range []string{"unpend_dead_letters", "unpend_diagnoses_failed_total"} {
		if got := r.figure(t, of); got != 0 {
			t.Errorf("%s is %v", of, got)
		}
	}
	if n := r.told("panic"); n > 0 {
		t.Errorf("%d lines tell of a panic", n)
	}
	s.add(func() {
		s.ratio, s.worst = max(s.ratio, float64(most)/float64(base)), max(s.worst, took)
		s.notes["service"] = fmt.Sprintf("at most %d requests in %.0f s, undisturbed %d, %d Jobs at %d %% for %.0f s, %d of those that have ended diagnosed before, %.0f failed watches counted, %.0f goroutines, %.0f before, %.1f s",
			most, lookFor.Seconds(), base, len(r.over)+len(r.waiting), percent, long.Seconds(), r.diagnosed(), r.failures(t), after, before, took.Seconds())
	})
}

// rolled is a service whose requests a proxy answers, and the Jobs that wait and have ended.
type rolled struct {
	*observer
	proxy         *faultProxy
	waiting, over []string
}

// churn has Jobs come and go for a while, with a fault, and says how many requests came in
// the worst stretch. All streams end at its beginning, and then every so often.
func (r *rolled) churn(t *testing.T, name string, long time.Duration, f fault) (most int) {
	t.Helper()
	w := &stretches{began: time.Now(), next: f}
	r.proxy.setCut(w.look)
	cut := time.Now()
	for n := 0; time.Since(w.began) < long; n++ {
		next := time.After(min(jobEvery, time.Until(w.began.Add(long))))
		r.waiting = append(r.waiting, r.waits(t, fmt.Sprintf("%s-%d", name, n), 1)...)
		if more := len(r.waiting) - jobsAtAll; more > 0 {
			ended(t, r.ControlPlane, r.waiting[:more])
			r.over, r.waiting = append(r.over, r.waiting[:more]...), slices.Clone(r.waiting[more:])
		}
		if <-next; time.Since(cut) >= streamsEvery {
			r.lives(t)
			r.proxy.setCut(w.look)
			cut = time.Now()
		}
	}
	r.proxy.set(nil)
	return slices.Max(w.counted())
}

// diagnosed is how many of the Jobs that have ended had a line.
func (r *rolled) diagnosed() int {
	lines := map[string]bool{}
	for _, d := range r.diagnoses() {
		lines[d.Workload.Name] = true
	}
	return len(slices.DeleteFunc(slices.Clone(r.over), func(name string) bool { return !lines[name] }))
}

// stretches counts requests, of each lookFor apart, and passes them on.
type stretches struct {
	began time.Time
	next  fault
	mu    sync.Mutex
	n     []int
}

func (w *stretches) look(a *asked) http.HandlerFunc {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := int(time.Since(w.began) / lookFor)
	for len(w.n) <= at {
		w.n = append(w.n, 0)
	}
	if w.n[at]++; w.next == nil {
		return nil
	}
	return w.next(a)
}

func (w *stretches) counted() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int{0}, w.n...)
}
