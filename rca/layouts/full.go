package layouts

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Full tells: no GPU of the node has enough unheld memory slices.
func Full(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
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
	if n.HoldersKnown && profiled(n) && !n.Unreadable {
		claims = append(claims, diagnosis.That("max(unheld)", "", diagnosis.Is, strconv.Itoa(most)))
	}
	fact := fmt.Sprintf("at most %d memory slices of one GPU are unheld", most)
	if !n.HoldersKnown {
		fact = fmt.Sprintf("at most %d memory slices of one GPU are known to be unheld", most)
	}
	return view.Found(n.Certainty(), "not enough unheld slices for "+a.Each(), diagnosis.Fact(n.ReportRef(), fact, claims...))
}

// fullByCounts needs no positions: too few slices in all are too few on each GPU.
func fullByCounts(n *view.Node, a view.Ask) *view.Finding {
	c, ok := n.CountsFor(a)
	if !ok || !c.Full() {
		return nil
	}
	return view.Found(diagnosis.Possible, "not enough unheld slices for "+a.Each(), c.Fact(n), n.Doubted())
}
