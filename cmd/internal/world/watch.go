package world

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	k8stesting "k8s.io/client-go/testing"
)

// highWater is how full a tracker's watch may get before writers wait: it holds
// 100 events and panics at the next.
const highWater = 50

// relay takes events off a tracker's watch as they come and keeps them until the
// watcher reads them: an API server does not fall over a slow reader either.
type relay struct {
	inner   watch.Interface
	out     chan watch.Event
	stop    chan struct{}
	once    sync.Once
	waiting []watch.Event // not read yet
}

func (r *relay) ResultChan() <-chan watch.Event { return r.out }

func (r *relay) Stop() { r.once.Do(func() { close(r.stop) }) }

// run ends when either side stops.
func (r *relay) run() {
	defer close(r.out)
	defer r.inner.Stop()
	for {
		var out chan watch.Event
		var next watch.Event
		if len(r.waiting) > 0 {
			out, next = r.out, r.waiting[0]
		}
		select {
		case <-r.stop:
			return
		case e, ok := <-r.inner.ResultChan():
			if !ok {
				return
			}
			r.waiting = append(r.waiting, e)
		case out <- next:
			r.waiting = r.waiting[1:]
		}
	}
}

// watch is the reactor for every watch. It begins with everything that exists:
// what happened between a list and its watch must not be lost, and the tracker's
// own way of telling it has room for 100 objects.
func (s *store) watch(action k8stesting.Action) (bool, watch.Interface, error) {
	a, ok := action.(k8stesting.WatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	inner, err := s.tracker.Watch(a.GetResource(), a.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	r := &relay{inner: inner, out: make(chan watch.Event), stop: make(chan struct{})}
	for _, o := range s.existing(a.GetResource(), a.GetNamespace()) {
		r.waiting = append(r.waiting, watch.Event{Type: watch.Added, Object: o})
	}
	s.relays = append(s.relays, r)
	s.running.Go(r.run)
	return true, r, nil
}

// drain waits until no watch is near its limit; watches that have ended are
// forgotten.
func (s *store) drain() {
	s.relays = slices.DeleteFunc(s.relays, func(r *relay) bool {
		select {
		case <-r.stop:
			return true
		default:
			return false
		}
	})
	for _, r := range s.relays {
		for len(r.inner.ResultChan()) > highWater {
			select {
			case <-r.stop:
			case <-time.After(time.Millisecond):
				continue
			}
			break
		}
	}
}

// existing lists what is stored of a resource, by name.
func (s *store) existing(gvr schema.GroupVersionResource, ns string) []runtime.Object {
	var out []runtime.Object
	for _, key := range slices.Sorted(maps.Keys(s.stored[gvr])) {
		if strings.HasPrefix(key, ns+"/") || ns == "" {
			out = append(out, s.stored[gvr][key].DeepCopyObject())
		}
	}
	return out
}
