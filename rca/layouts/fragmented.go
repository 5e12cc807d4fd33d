package layouts

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Fragmented tells: enough memory slices of one GPU are unheld, but every legal
// start runs into a held one.
func Fragmented(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
	if !ok {
		return nil
	}
	for _, g := range n.GPUs {
		p, ok := g.Grid.Profile(a.Profile)
		if !ok {
			continue
		}
		if fit := g.Fit(a.Profile); fit.Free >= p.MemorySlices && fit.Start < 0 {
			known := "unheld"
			if !n.HoldersKnown {
				known = "known to be unheld"
			}
			fact := fmt.Sprintf("GPU %d: %d of %d memory slices are %s, %s needs %s", g.Index, fit.Free, g.Grid.Slices(), known, a.Profile, view.StartsText(p))
			return view.Found(n.Certainty(), "enough slices are unheld, but no legal start for "+a.Profile, diagnosis.Fact(n.ReportRef(), fact, heldSlices(n, &g, fit.Free)...))
		}
	}
	return nil
}
