package layouts

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// LayoutMismatch tells: a legal position for the profile is free of held
// instances, so only the layout is in the way.
func LayoutMismatch(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
	if !ok {
		return nil
	}
	if f := mismatch(n, a, s); f != nil || len(n.GPUs) > 0 {
		return f
	}
	if f := migOff(n, a); f != nil {
		return f
	}
	return mismatchByCounts(n, a)
}

func mismatch(n *view.Node, a view.Ask, s *Short) *view.Finding {
	room, best := 0, -1
	start := 0
	for i := range n.GPUs {
		fit := n.GPUs[i].Fit(a.Profile)
		room += fit.Room
		if fit.Start >= 0 && best < 0 {
			best, start = i, fit.Start
		}
		if best >= 0 && int64(room) >= a.Count {
			break
		}
	}
	if best < 0 || int64(room) < a.Count {
		return migOff(n, a)
	}
	g := &n.GPUs[best]
	fact := "GPU " + strconv.Itoa(g.Index) + ": " + a.Profile + " could start at memory slice " + strconv.Itoa(start) + ", nobody holds it; the layout is " + view.LayoutText(*g)
	return view.Found(n.Certainty(), "not laid out with "+a.Profile+", though a legal position is unheld", diagnosis.Fact(n.ReportRef(), fact, append(unheldFrom(g, start, a.Profile), startsAt(n, g, a.Profile, start)...)...), n.UsedOf(a, s.Allocatable))
}

// migOff finds a whole GPU that nobody holds and that could be partitioned.
func migOff(n *view.Node, a view.Ask) *view.Finding {
	if n.Geometry == nil || !n.HoldersKnown {
		return nil
	}
	for i := range n.Geometry.Report.GPUs {
		g := &n.Geometry.Report.GPUs[i]
		if g.MIG == nil || g.MIG.Current || !g.Healthy || len(g.Holders) > 0 {
			continue
		}
		grid, err := placement.GridOf(*g)
		if err != nil {
			continue
		}
		if _, ok := grid.Profile(a.Profile); ok {
			return view.Found(n.Certainty(), "MIG is off on a GPU that nobody holds", diagnosis.Fact(n.ReportRef(), fmt.Sprintf("GPU %d: MIG is off, nobody holds it", g.Index), view.OfGPU(g.Index, ".mig.current", diagnosis.Is, "false"), view.OfGPU(g.Index, ".holders", diagnosis.Absent, "")), n.UseOf(a))
		}
	}
	return nil
}

// mismatchByCounts is all that can be said without positions: that there must be
// a GPU that nobody is on, or else nothing that is sure.
func mismatchByCounts(n *view.Node, a view.Ask) *view.Finding {
	if len(n.Profiles()) == 0 && n.Geometry != nil {
		return nil
	}
	if f := FormerWhole(n); f != nil {
		return view.Found(diagnosis.Possible, "does not offer "+a.Each()+"; "+f.Says, diagnosis.Fact(n.Ref(), "advertises "+n.Advertised()+"; "+f.Says, f.Claims...), n.Doubted())
	}
	c, ok := n.CountsFor(a)
	switch {
	case ok && c.Fits(a):
		says := fmt.Sprintf("does not offer %s, though nobody can be on %d of its GPUs", a.Each(), c.Untouched())
		return view.Found(diagnosis.Possible, says, c.Fact(n), n.UseOf(a), n.Doubted())
	case ok && c.Full():
		return nil
	}
	return view.Found(diagnosis.Possible, "does not offer "+a.Each(), diagnosis.Fact(n.Ref(), "advertises "+n.Advertised(), n.Advertises()...), n.Doubted())
}
