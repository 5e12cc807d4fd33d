package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// migFull: no GPU of the node has enough unheld memory slices.
var migFull = Rule{ID: diagnosis.MIGFull, gpu: true, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.mig()
	if !ok {
		return nil
	}
	if len(n.GPUs) == 0 {
		return fullByCounts(n, a)
	}
	most, claims := 0, []diagnosis.Claim{}
	for _, g := range n.GPUs {
		free := g.Fit(a.Profile).Free
		most, claims = max(most, free), append(claims, heldSlices(n, &g, free)...)
	}
	fact := fmt.Sprintf("at most %d memory slices of one GPU are unheld", most)
	return &finding{n.Certainty(), "not enough unheld slices for " + a.Each(), []diagnosis.Evidence{diagnosis.Fact(n.ReportRef(), fact, claims...)}}
}}

// fullByCounts needs no positions: too few slices in all are too few on each GPU.
func fullByCounts(n *view.Node, a view.Ask) *finding {
	c, ok := n.CountsFor(a)
	if !ok || !c.Full() {
		return nil
	}
	return &finding{diagnosis.Possible, "not enough unheld slices for " + a.Each(), []diagnosis.Evidence{c.Fact(n), n.Doubted()}}
}
