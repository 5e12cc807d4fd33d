package rca

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/placement"
)

// migLayoutMismatch: a legal position for the profile is free of held
// instances, so only the layout is in the way.
var migLayoutMismatch = Rule{ID: MIGLayoutMismatch, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.mig()
	if !ok {
		return nil
	}
	if f := n.mismatch(a, b); f != nil || len(n.gpus) > 0 {
		return f
	}
	if f := n.migOff(a); f != nil {
		return f
	}
	return n.mismatchByCounts(a)
}}

func (n *nodeView) mismatch(a ask, b *blocker) *finding {
	room, best := 0, -1
	start := 0
	for i := range n.gpus {
		fit := n.gpus[i].Fit(a.profile)
		room += fit.Room
		if fit.Start >= 0 && best < 0 {
			best, start = i, fit.Start
		}
		if best >= 0 && int64(room) >= a.count {
			break
		}
	}
	if best < 0 || int64(room) < a.count {
		return n.migOff(a)
	}
	g := &n.gpus[best]
	fact := "GPU " + strconv.Itoa(g.Index) + ": " + a.profile + " could start at memory slice " + strconv.Itoa(start) + ", nobody holds it; the layout is " + layoutText(*g)
	return &finding{n.certainty(), "not laid out with " + a.profile + ", though a legal position is unheld",
		[]Evidence{{n.reportRef(), fact}, n.usedOf(a, b.allocatable)}}
}

// migOff finds a whole GPU that nobody holds and that could be partitioned.
func (n *nodeView) migOff(a ask) *finding {
	if n.geometry == nil || !n.holdersKnown {
		return nil
	}
	for i := range n.geometry.Report.GPUs {
		g := &n.geometry.Report.GPUs[i]
		if g.MIG == nil || g.MIG.Current || len(g.Holders) > 0 {
			continue
		}
		grid, err := placement.GridOf(*g)
		if err != nil {
			continue
		}
		if _, ok := grid.Profile(a.profile); ok {
			return &finding{n.certainty(), "MIG is off on a GPU that nobody holds", []Evidence{{n.reportRef(), fmt.Sprintf("GPU %d: MIG is off, nobody holds it", g.Index)}, n.useOf(a)}}
		}
	}
	return nil
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
		says := fmt.Sprintf("does not offer %s, though nobody can be on %d of its GPUs", a.each(), c.untouched())
		return &finding{Possible, says, []Evidence{c.fact(n), n.useOf(a), {n.ref(), n.doubt}}}
	case ok && c.full():
		return nil
	}
	return &finding{Possible, "does not offer " + a.each(),
		[]Evidence{{n.ref(), "advertises " + n.advertised()}, {n.ref(), n.doubt}}}
}
