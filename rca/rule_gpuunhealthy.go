package rca

import (
	"fmt"
)

// gpuUnhealthy: with the devices that the plugin has marked unhealthy (capacity
// above allocatable) the request would fit.
var gpuUnhealthy = Rule{ID: GPUUnhealthy, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, sick := b.ask, b.capacity-b.allocatable
	if !b.asked || sick <= 0 {
		return nil
	}
	free := n.free(a.resource)
	if free.Value()+sick < a.count {
		return nil
	}
	evidence := []Evidence{{n.ref(), fmt.Sprintf("capacity %s=%d, allocatable %d", a.resource, b.capacity, b.allocatable)}}
	if n.geometry != nil {
		for _, g := range n.geometry.Report.GPUs {
			if !g.Healthy {
				evidence = append(evidence, Evidence{n.reportRef(), fmt.Sprintf("GPU %d (%s) is unhealthy", g.Index, g.UUID)})
			}
		}
	}
	return &finding{Proven, "some of its devices are unhealthy", evidence}
}}
