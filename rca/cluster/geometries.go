package cluster

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
)

// OnGeometry calls set for every NodeGeometry that is there or comes, and gone
// with the node's name for every one that leaves or can no longer be read, one call at a
// time until the Follower is closed.
func (f *Follower) OnGeometry(set func(*nodeprobe.NodeGeometry), gone func(node string)) error {
	k := kindNamed(nodeprobe.Kind.Kind)
	f.mu.Lock()
	in := f.informers[k.name]
	f.mu.Unlock()
	tell := func(o any) {
		if obj, err := k.typed(o); err == nil {
			set(obj.(*nodeprobe.NodeGeometry))
		} else if u, ok := o.(*unstructured.Unstructured); ok {
			gone(u.GetName()) // what it said before is no longer so
		}
	}
	_, err := in.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, o any) { tell(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if u, ok := o.(*unstructured.Unstructured); ok {
				gone(u.GetName())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", k, err)
	}
	return nil
}

// noteUntold marks the GPUs of a dumped report that does not say whether they are healthy:
// that they are sick it does not say either.
func noteUntold(geo *nodeprobe.NodeGeometry, data []byte) {
	var told struct {
		Report struct {
			GPUs []struct {
				Healthy *bool `json:"healthy"`
			} `json:"gpus"`
		} `json:"report"`
	}
	if json.Unmarshal(data, &told) != nil {
		return
	}
	for i, g := range told.Report.GPUs {
		geo.Report.GPUs[i].Untold = g.Healthy == nil
	}
}

func kindNamed(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}
