package rca

import (
	"fmt"

	"github.com/unpend/unpend/rca/whatif"
)

// gpuUnhealthy: with the devices that the plugin has marked unhealthy (capacity
// above allocatable) the request would fit.
var gpuUnhealthy = Rule{ID: GPUUnhealthy, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	r, ok := insufficient(b)
	a, asked := c.askOf(r)
	sick := n.capacity(a.resource) - n.allocatable(a.resource)
	if !ok || !asked || sick <= 0 {
		return nil
	}
	free := n.free(a.resource)
	if free.Value()+sick < a.count {
		return nil
	}
	evidence := []Evidence{{n.ref(), fmt.Sprintf("capacity %s=%d, allocatable %d", a.resource, n.capacity(a.resource), n.allocatable(a.resource))}}
	if n.geometry != nil {
		for _, g := range n.geometry.Report.GPUs {
			if !g.Healthy {
				evidence = append(evidence, Evidence{n.reportRef(), fmt.Sprintf("GPU %d (%s) is unhealthy", g.Index, g.UUID)})
			}
		}
	}
	return &finding{Proven, "some of its devices are unhealthy", evidence}
}}
