package rca

import (
	"fmt"
	"slices"
)

// gpuRequestTooLarge: the node has fewer GPUs than one pod asks for, held or not.
var gpuRequestTooLarge = Rule{ID: GPURequestTooLarge, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.whole()
	has := b.capacity
	if !ok || has == 0 || has >= a.count {
		return nil
	}
	fact := fmt.Sprintf("capacity %s=%d, one pod asks for %d", a.resource, has, a.count)
	return &finding{Proven, "has fewer GPUs than one pod asks for", []Evidence{{n.ref(), fact}}}
}}

// hasGPUs says whether some node of the cluster has GPUs.
func (w *world) hasGPUs() bool {
	if w.anyGPUs == nil {
		w.anyGPUs = new(slices.ContainsFunc(w.sortedNodes(), (*nodeView).hasGPUs))
	}
	return *w.anyGPUs
}

// noGPUAnywhere: the same of nodes that have none, where no node of the cluster has any.
var noGPUAnywhere = Rule{ID: GPURequestTooLarge, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if !b.asked || b.ask.profile != "" || c.world.hasGPUs() {
		return nil
	}
	return &finding{Likely, "no node of the cluster has a GPU", []Evidence{{n.ref(), "no label, capacity or report speaks of a GPU"}}}
}}
