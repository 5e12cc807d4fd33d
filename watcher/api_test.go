package watcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/watcher/incident"
)

// api is the pods of an API server: it numbers their versions, and its watches
// can be deaf. Everything else a clientset holds in memory.
type api struct {
	*fake.Clientset
	mu      sync.Mutex
	version int
	pods    map[string]*corev1.Pod
	watches []*watch.RaceFreeFakeWatcher
	deaf    bool // watches tell nothing
}

func newAPI(objects ...runtime.Object) *api {
	a := &api{Clientset: fake.NewClientset(objects...), version: 100, pods: map[string]*corev1.Pod{}}
	a.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		list := &corev1.PodList{}
		list.ResourceVersion = strconv.Itoa(a.version)
		for _, name := range slices.Sorted(maps.Keys(a.pods)) {
			list.Items = append(list.Items, *a.pods[name].DeepCopy())
		}
		return true, list, nil
	})
	a.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		w := watch.NewRaceFreeFake()
		a.watches = append(a.watches, w)
		return true, w, nil
	})
	return a
}

// set writes pods.
func (a *api) set(pods ...*corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range pods {
		known := a.pods[p.Name] != nil
		a.version++
		p = p.DeepCopy()
		p.ResourceVersion = strconv.Itoa(a.version)
		a.pods[p.Name] = p
		a.tell(func(w *watch.RaceFreeFakeWatcher) {
			if known {
				w.Modify(p.DeepCopy())
			} else {
				w.Add(p.DeepCopy())
			}
		})
	}
}

func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	p := a.pods[name].DeepCopy()
	p.ResourceVersion = strconv.Itoa(a.version)
	delete(a.pods, name)
	a.tell(func(w *watch.RaceFreeFakeWatcher) { w.Delete(p) })
}

// deafen has every watch stand and tell nothing.
func (a *api) deafen(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deaf = on
}

func (a *api) tell(of func(*watch.RaceFreeFakeWatcher)) {
	for _, w := range a.watches {
		if !a.deaf && !w.IsStopped() {
			of(w)
		}
	}
}

// get is a pod as it is now.
func (a *api) get(name string) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[name].DeepCopy()
}

// bind has a pod run.
func (a *api) bind(name string) {
	p := a.get(name)
	p.Spec.NodeName = "gpu-1"
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	a.set(p)
}

// taken is a broker: what it took, and what it was offered while it was away.
type taken struct {
	mu       sync.Mutex
	all      []incident.Incident
	refuse   func(incident.Incident) bool
	refused  int
	newsRead int
	again    chan struct{} // see Options.Again
}

var errAway = errors.New("the broker is away")

func (p *taken) publish(_ context.Context, i incident.Incident) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil && p.refuse(i) {
		p.refused++
		return errAway
	}
	p.all = append(p.all, i)
	return nil
}

// lose forgets everything that was taken, and says so.
func (p *taken) lose() {
	p.mu.Lock()
	p.all, p.newsRead = nil, 0
	p.mu.Unlock()
	p.again <- struct{}{}
}

// away sets what is refused from now on.
func (p *taken) away(refuse func(incident.Incident) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// tries are how many incidents were refused so far.
func (p *taken) tries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// told is everything that was taken so far.
func (p *taken) told() []incident.Incident {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// kept is the last word on each incident; before is what was known at the incidenttest.Start.
func (p *taken) kept(before []incident.Incident) []incident.Incident {
	last := map[string]incident.Incident{}
	for _, i := range append(slices.Clone(before), p.told()...) {
		last[i.ID] = i
	}
	return slices.Collect(maps.Values(last))
}

// news waits until the watcher has nothing left to do and returns what was taken
// since the last time.
func (p *taken) news(t *testing.T) []incident.Incident {
	t.Helper()
	pass(time.Second) // of the bubble: five debounces, no sweep
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.all[p.newsRead:]
	p.newsRead = len(p.all)
	return out
}

// one is the only news.
func (p *taken) one(t *testing.T) incident.Incident {
	t.Helper()
	got := p.news(t)
	if len(got) != 1 {
		t.Fatalf("published %+v, want one incident", got)
	}
	return got[0]
}

func (p *taken) none(t *testing.T, why string) {
	t.Helper()
	if got := p.news(t); len(got) > 0 {
		t.Errorf("%s: published %+v", why, got)
	}
}

// watching runs a Watcher in a bubble of time for the length of a test. Every
// goroutine it has started must be gone after it.
func watching(t *testing.T, a *api, published []incident.Incident, test func(t *testing.T, p *taken)) {
	t.Helper()
	watchingWith(t, a, published, func(*Options) {}, test)
}

// watchingWith is watching with other options.
func watchingWith(t *testing.T, a *api, published []incident.Incident, edit func(*Options), test func(t *testing.T, p *taken)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &taken{again: make(chan struct{})}
		o := Options{Client: a, Publish: p.publish, Published: func(context.Context) ([]incident.Incident, error) { return p.kept(published), nil }, Again: p.again,
			Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()}
		edit(&o)
		w, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		test(t, p)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

func names(i incident.Incident) []string {
	var out []string
	for _, p := range i.Pods {
		out = append(out, p.Name)
	}
	return out
}

func String(i incident.Incident) string {
	return fmt.Sprintf("%s %s/%s %v@%s resolved=%v", i.ID, i.Workload.Kind, i.Workload.Name, names(i), i.Newest, i.Resolved)
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }
