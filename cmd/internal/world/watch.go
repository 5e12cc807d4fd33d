package world

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	k8stesting "k8s.io/client-go/testing"
)

// highWater is how full a tracker's watch may get before writers wait: it holds
// 100 events and panics at the next.
const highWater = 50

// relay takes events off a tracker's watch as they come and keeps them until the
// watcher reads them: an API server does not fall over a slow reader either.
type relay struct {
	inner watch.Interface
	out   chan watch.Event
	stop  chan struct{}
	once  sync.Once
}

func (r *relay) ResultChan() <-chan watch.Event { return r.out }

func (r *relay) Stop() { r.once.Do(func() { close(r.stop) }) }

// run ends when either side stops.
func (r *relay) run() {
	defer close(r.out)
	defer r.inner.Stop()
	var waiting []watch.Event
	for {
		var out chan watch.Event
		var next watch.Event
		if len(waiting) > 0 {
			out, next = r.out, waiting[0]
		}
		select {
		case <-r.stop:
			return
		case e, ok := <-r.inner.ResultChan():
			if !ok {
				return
			}
			waiting = append(waiting, e)
		case out <- next:
			waiting = waiting[1:]
		}
	}
}

// watch is the reactor for every watch.
func (s *store) watch(action k8stesting.Action) (bool, watch.Interface, error) {
	a, ok := action.(k8stesting.WatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	inner, err := s.tracker.Watch(a.GetResource(), a.GetNamespace(), a.ListOptions)
	if err != nil {
		return true, nil, err
	}
	r := &relay{inner: inner, out: make(chan watch.Event), stop: make(chan struct{})}
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
