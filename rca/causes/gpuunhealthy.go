package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// gpuUnhealthy: with the devices that the plugin has marked unhealthy (capacity
// above allocatable) the request would fit.
var gpuUnhealthy = Rule{ID: diagnosis.GPUUnhealthy, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	a, sick := b.ask, b.capacity-b.allocatable
	if !b.asked || sick <= 0 {
		return nil
	}
	free := n.Free(a.Resource)
	if free.Value()+sick < a.Count {
		return nil
	}
	evidence := []diagnosis.Evidence{{Ref: n.Ref(), Fact: fmt.Sprintf("capacity %s=%d, allocatable %d", a.Resource, b.capacity, b.allocatable)}}
	if n.Geometry != nil {
		for _, g := range n.Geometry.Report.GPUs {
			if !g.Healthy {
				evidence = append(evidence, diagnosis.Evidence{Ref: n.ReportRef(), Fact: fmt.Sprintf("GPU %d (%s) is unhealthy", g.Index, g.UUID)})
			}
		}
	}
	return &finding{diagnosis.Proven, "some of its devices are unhealthy", evidence}
}}
