package live

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// OnGeometry calls set for every NodeGeometry that is there or comes, and gone
// with the node's name for every one that leaves or can no longer be read, one call at a
// time until the Follower is closed.
func (f *Follower) OnGeometry(set func(*nodeprobe.NodeGeometry), gone func(node string)) error {
	return on(f, nodeprobe.Kind.Kind, set, gone)
}

// OnNode is OnGeometry for nodes.
func (f *Follower) OnNode(set func(*corev1.Node), gone func(node string)) error {
	return on(f, "Node", set, gone)
}

func on[T cluster.Object](f *Follower, name string, set func(T), gone func(name string)) error {
	k := cluster.KindNamed(name)
	f.mu.Lock()
	in := f.informers[k.Name]
	f.mu.Unlock()
	tell := func(o any) {
		obj, err := typed(k, o)
		if is, ok := obj.(T); err == nil && ok {
			set(is)
		} else if named, ok := o.(cluster.Object); ok {
			gone(named.GetName()) // what it said before is no longer so
		}
	}
	_, err := in.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, o any) { tell(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if named, ok := o.(cluster.Object); ok {
				gone(named.GetName())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", k, err)
	}
	return nil
}
