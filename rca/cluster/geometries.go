package cluster

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/unpend/unpend/nodeprobe"
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

func on[T Object](f *Follower, name string, set func(T), gone func(name string)) error {
	k := kindNamed(name)
	f.mu.Lock()
	in := f.informers[k.name]
	f.mu.Unlock()
	tell := func(o any) {
		obj, err := k.typed(o)
		if is, ok := obj.(T); err == nil && ok {
			set(is)
		} else if named, ok := o.(Object); ok {
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
			if named, ok := o.(Object); ok {
				gone(named.GetName())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", k, err)
	}
	return nil
}

// noteUntold marks the GPUs of a dumped report that does not say whether they are healthy:
// that they are sick it does not say either. A report is read again for that only where a
// GPU is not said to be healthy.
func noteUntold(geo *nodeprobe.NodeGeometry, data []byte) {
	if !slices.ContainsFunc(geo.Report.GPUs, func(g nodeprobe.GPU) bool { return !g.Healthy }) {
		return
	}
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

// shareProfiles keeps equal tables of profiles once: the GPUs of a model have the same, and
// they are most of a report.
func (s *State) shareProfiles() {
	known := map[string][]nodeprobe.Profile{} // by product
	same := func(a, b nodeprobe.Profile) bool {
		starts := slices.Equal(a.Starts, b.Starts)
		return starts && a.Name == b.Name && a.ID == b.ID && a.ComputeSlices == b.ComputeSlices && a.MemorySlices == b.MemorySlices && a.MemoryMiB == b.MemoryMiB && a.Max == b.Max
	}
	for _, g := range s.reports {
		for i := range g.Report.GPUs {
			gpu := &g.Report.GPUs[i]
			if table := known[gpu.Product]; slices.EqualFunc(table, gpu.Profiles, same) {
				gpu.Profiles = table
			} else {
				known[gpu.Product] = gpu.Profiles
			}
		}
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
