package rca

import (
	"fmt"

	"github.com/unpend/unpend/rca/whatif"
)

// migLayoutMismatch: a legal position for the profile is free of held
// instances, so only the layout is in the way.
var migLayoutMismatch = Rule{ID: MIGLayoutMismatch, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok {
		return nil
	}
	if len(n.gpus) == 0 {
		return n.mismatchByCounts(a)
	}
	return n.mismatch(a)
}}

func (n *nodeView) mismatch(a ask) *finding {
	room, best := 0, -1
	for i, g := range n.gpus {
		fit := g.Fit(a.profile)
		room += fit.Room
		if fit.Start >= 0 && best < 0 {
			best = i
		}
	}
	if best < 0 || int64(room) < a.count {
		return nil
	}
	g := n.gpus[best]
	fact := fmt.Sprintf("GPU %d: %s could start at memory slice %d, nobody holds it; the layout is %s", g.Index, a.profile, g.Fit(a.profile).Start, layoutText(g))
	return &finding{n.certainty(), "not laid out with " + a.profile + ", though a legal position is unheld",
		[]Evidence{{n.reportRef(), fact}, n.useOf(a)}}
}

// mismatchByCounts is all that can be said without positions: that there must be
// a GPU that nobody is on, or else nothing that is sure.
func (n *nodeView) mismatchByCounts(a ask) *finding {
	if len(n.profiles()) == 0 && n.geometry != nil {
		return nil
	}
	c, ok := n.countsFor(a)
	switch {
	case ok && c.fits(a):
		says := fmt.Sprintf("does not offer %d %s, though %d of its GPUs cannot be held by anybody", a.count, a.profile, c.untouched())
		return &finding{Likely, says, []Evidence{c.fact(n), n.useOf(a), {n.ref(), n.doubt}}}
	case ok && c.full():
		return nil
	}
	return &finding{Possible, fmt.Sprintf("does not offer %d %s", a.count, a.profile),
		[]Evidence{{n.ref(), "advertises " + n.advertised()}, {n.ref(), n.doubt}}}
}
