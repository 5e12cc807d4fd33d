package live

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// annotated are the kinds on which people write annotations for us: pods, and what makes them.
func annotated() []string {
	out := []string{"Pod"}
	for _, k := range incident.Kinds {
		out = append(out, k.Kind)
	}
	return out
}

// OnAnnotated calls seen with every pod and workload that carries an annotation of ours, which
// is one that State keeps: once at first, and again whenever the object is written. It is
// called from several goroutines until the Follower is closed.
func (f *Follower) OnAnnotated(key string, seen func(schema.GroupVersionKind, cluster.Object)) error {
	for _, name := range annotated() {
		k := cluster.KindNamed(name)
		f.mu.Lock()
		in := f.informers[k.Name]
		f.mu.Unlock()
		if in == nil {
			continue // it may not be read
		}
		tell := func(o any) {
			obj, err := typed(k, o)
			if err != nil || obj == nil {
				return
			}
			if _, carries := obj.GetAnnotations()[key]; carries {
				seen(k.Resource.GroupVersion().WithKind(k.API()), obj)
			}
		}
		_, err := in.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }})
		if err != nil {
			return fmt.Errorf("follow annotations of %s: %w", k, err)
		}
	}
	return nil
}
