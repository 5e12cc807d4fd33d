package rca

import (
	"fmt"
)

// migFragmented: enough memory slices of one GPU are unheld, but every legal
// start runs into a held one.
var migFragmented = Rule{ID: MIGFragmented, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.mig()
	if !ok {
		return nil
	}
	for _, g := range n.gpus {
		p, ok := g.Grid.Profile(a.profile)
		if !ok {
			continue
		}
		if fit := g.Fit(a.profile); fit.Free >= p.MemorySlices && fit.Start < 0 {
			fact := fmt.Sprintf("GPU %d: %d of %d memory slices are unheld, %s needs %s", g.Index, fit.Free, g.Grid.Slices(), a.profile, startsText(p))
			return &finding{n.certainty(), "enough slices are unheld, but no legal start for " + a.profile, []Evidence{{n.reportRef(), fact}}}
		}
	}
	return nil
}}
