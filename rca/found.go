package rca

import (
	"github.com/unpend/unpend/rca/placement"
)

// Found is what can be done about a case, best first.
type Found []*candidate

// Fixes are those that people are shown.
func (all Found) Fixes() []Fix {
	out := make([]Fix, len(all))
	for i, f := range all {
		out[i] = f.fix
	}
	return out
}

// Root is the cause that the best proved fix removes; empty where none settles it.
func (all Found) Root() CauseID {
	for _, f := range all {
		if f.fix.Proof.Verdict == Schedules && f.removes != "" {
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
func (all Found) Redrawn() (*nodeView, placement.GPU, placement.Layout, bool) {
	for _, f := range all {
		for _, ch := range f.changes {
			if ch.relayout == nil || f.fix.Proof.GPU == nil {
				continue
			}
			for _, g := range f.node.gpus {
				if g.Index == *f.fix.Proof.GPU {
					return f.node, g, ch.relayout.layouts()[g.Index], true
				}
			}
		}
	}
	return nil, placement.GPU{}, nil, false
}
