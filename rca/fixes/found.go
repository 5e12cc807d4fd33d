package fixes

import (
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// Found is what can be done about a case, best first.
type Found []*candidate

// Fixes are those that people are shown.
func (all Found) Fixes() []diagnosis.Fix {
	out := make([]diagnosis.Fix, len(all))
	for i, f := range all {
		out[i] = f.fix
	}
	return out
}

// Root are the causes that the best proved fix removes, that of its most disruptive change first; so are those of the
// first fix of all where the pod runs once a person has mended a node by it. Where what is proved is a rollout that leaves as many
// waiting, what the autoscaler has said is why. None where none settles it.
func (all Found) Root() []diagnosis.CauseID {
	var moves *candidate
	for i, f := range all {
		mended := i == 0 && !f.beside && f.fix.Proof.Verdict == diagnosis.Waits && f.fix.Kind != diagnosis.Wait
		schedules := f.fix.Proof.Verdict == diagnosis.Schedules
		if f.removes != "" && (schedules && !f.stays() || mended) {
			return f.removed()
		}
		if f.removes != "" && schedules && moves == nil {
			moves = f
		}
	}
	if i := slices.IndexFunc(all, func(f *candidate) bool { return f.beside }); i == 0 || i > 0 && moves != nil {
		return all[i].removed() // nothing better than what the autoscaler has said
	}
	if moves != nil {
		return moves.removed()
	}
	return nil
}

func (f *candidate) removed() []diagnosis.CauseID {
	out := []diagnosis.CauseID{f.removes}
	for _, ch := range f.changes {
		if ch.Cause != "" && !slices.Contains(out, ch.Cause) {
			out = append(out, ch.Cause)
		}
	}
	return out
}

// Redrawn is the GPU that the best fix gives another layout, and that layout; false where
// none does.
func (all Found) Redrawn() (*view.Node, placement.GPU, placement.Layout, bool) {
	for _, f := range all {
		for _, ch := range f.changes {
			if ch.Relayout == nil || f.fix.Proof.GPU == nil {
				continue
			}
			for _, g := range f.node.GPUs {
				if g.Index == *f.fix.Proof.GPU {
					return f.node, g, ch.Relayout.Layouts()[g.Index], true
				}
			}
		}
	}
	return nil, placement.GPU{}, nil, false
}
