package rca

import (
	"fmt"
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
