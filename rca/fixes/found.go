package fixes

import (
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

// Root is the cause that the best proved fix removes; empty where none settles it.
func (all Found) Root() diagnosis.CauseID {
	for _, f := range all {
		if f.fix.Proof.Verdict == diagnosis.Schedules && f.removes != "" {
			return f.removes
		}
	}
	if len(all) > 0 && all[0].beside {
		return all[0].removes // nothing better than what the autoscaler has said
	}
	return ""
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
