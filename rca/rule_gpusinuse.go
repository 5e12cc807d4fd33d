package rca

import (
	"github.com/unpend/unpend/rca/whatif"
)

// gpusInUse: whole GPUs exist, enough for the request, and are requested by
// others.
var gpusInUse = Rule{ID: GPUsInUse, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.gpuShort(n, b)
	if !ok || n.allocatable(a.resource) < a.count {
		return nil
	}
	return &finding{Proven, "all whole GPUs are held", []Evidence{n.useOf(a)}}
}}
