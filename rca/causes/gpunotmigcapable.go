package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// gpuNotMIGCapable: MIG was asked of a model that has none.
var gpuNotMIGCapable = Rule{ID: diagnosis.GPUNotMIGCapable, gpu: true, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	if _, ok := b.mig(); !ok {
		return nil
	}
	if len(n.Reported()) > 0 {
		if n.Facts().MIG {
			return nil
		}
		return &finding{diagnosis.Proven, n.Product() + " has no MIG", []diagnosis.Evidence{diagnosis.Fact(n.ReportRef(), "no GPU of the node reports a MIG mode", diagnosis.That("report.gpus[*].mig", "", diagnosis.Absent, ""))}}
	}
	if n.Labels[view.LabelMIGCapable] != "false" {
		return nil
	}
	return &finding{diagnosis.Likely, n.Product() + " has no MIG", []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "label "+view.LabelMIGCapable+"=false", n.Labelled(view.LabelMIGCapable)...)}}
}}
