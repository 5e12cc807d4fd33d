package rca

import (
	"fmt"
)

// migFull: no GPU of the node has enough unheld memory slices.
var migFull = Rule{ID: MIGFull, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.mig()
	if !ok {
		return nil
	}
	if len(n.gpus) == 0 {
		return n.fullByCounts(a)
	}
	most := 0
	for _, g := range n.gpus {
		most = max(most, g.Fit(a.profile).Free)
	}
	fact := fmt.Sprintf("at most %d memory slices of one GPU are unheld", most)
	return &finding{n.certainty(), "not enough unheld slices for " + a.each(), []Evidence{{n.reportRef(), fact}}}
}}

// fullByCounts needs no positions: too few slices in all are too few on each GPU.
func (n *nodeView) fullByCounts(a ask) *finding {
	c, ok := n.countsFor(a)
	if !ok || !c.full() {
		return nil
	}
	return &finding{Possible, "not enough unheld slices for " + a.each(), []Evidence{c.fact(n), {n.ref(), n.doubt}}}
}
