package rca

import (
	"fmt"

	"github.com/unpend/unpend/rca/whatif"
)

// gpuRequestTooLarge: the node has fewer GPUs than one pod asks for, held or not.
var gpuRequestTooLarge = Rule{ID: GPURequestTooLarge, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.gpuShort(n, b)
	has := n.capacity(a.resource)
	if !ok || has == 0 || has >= a.count {
		return nil
	}
	fact := fmt.Sprintf("capacity %s=%d, one pod asks for %d", a.resource, has, a.count)
	return &finding{Proven, "has fewer GPUs than one pod asks for", []Evidence{{n.ref(), fact}}}
}}
