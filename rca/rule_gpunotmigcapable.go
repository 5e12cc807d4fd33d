package rca

import (
	"github.com/unpend/unpend/rca/whatif"
)

// gpuNotMIGCapable: MIG was asked of a model that has none.
var gpuNotMIGCapable = Rule{ID: GPUNotMIGCapable, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	if _, ok := c.migShort(n, b); !ok {
		return nil
	}
	if n.geometry != nil && len(n.geometry.Report.GPUs) > 0 {
		for _, g := range n.geometry.Report.GPUs {
			if g.MIG != nil {
				return nil
			}
		}
		return &finding{Proven, n.product() + " has no MIG", []Evidence{{n.reportRef(), "no GPU of the node reports a MIG mode"}}}
	}
	if n.Labels[labelMIGCapable] != "false" {
		return nil
	}
	return &finding{Likely, n.product() + " has no MIG", []Evidence{{n.ref(), "label " + labelMIGCapable + "=false"}}}
}}
