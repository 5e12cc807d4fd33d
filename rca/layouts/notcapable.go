package layouts

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// NotCapable tells: MIG was asked of a model that has none.
func NotCapable(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	if _, ok := s.MIG(); !ok {
		return nil
	}
	if len(n.Reported()) > 0 {
		if n.Facts().MIG {
			return nil
		}
		return view.Found(diagnosis.Proven, n.Product()+" has no MIG", diagnosis.Fact(n.ReportRef(), "no GPU of the node reports a MIG mode", diagnosis.That("report.gpus[*].mig", "", diagnosis.Absent, "")))
	}
	if n.Labels[view.LabelMIGCapable] != "false" {
		return nil
	}
	return view.Found(diagnosis.Likely, n.Product()+" has no MIG", diagnosis.Fact(n.Ref(), "label "+view.LabelMIGCapable+"=false", n.Labelled(view.LabelMIGCapable)...))
}
