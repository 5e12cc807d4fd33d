package live

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/rca/cluster"
)

// notePods keeps count of how far the pods have come. Handlers are called when
// the store has the object.
func (f *Follower) notePods(in cache.SharedIndexInformer) error {
	note := func(o any) {
		obj, ok := o.(cluster.Object)
		if !ok {
			return // a pod whose end was not seen
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if version := obj.GetResourceVersion(); cluster.CompareVersions(version, f.newest) > 0 {
			f.newest = version
		}
	}
	_, err := in.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, o any) { note(o) }, DeleteFunc: note})
	return err
}

// Await waits until the pods are known up to a resourceVersion: who was told of
// a change by somebody else must not look for it in a copy that lags. It says
// whether that came true within patience.
func (f *Follower) Await(ctx context.Context, version string, patience time.Duration) bool {
	if f.knows(version) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !f.knows(version) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func (f *Follower) knows(version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cluster.CompareVersions(f.newest, version) >= 0
}

// relisted is above the longest pause after which client-go follows a kind again that it lost:
// 30 s, up to twice that by chance.
const relisted = 75 * time.Second

// Behind says whether following pods has failed so lately that what happened meanwhile may
// not be known yet.
func (f *Follower) Behind() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.lost.IsZero() && f.now().Sub(f.lost) < relisted
}
