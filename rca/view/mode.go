package view

import (
	"maps"
	"slices"

	"github.com/unpend/unpend/rca/placement"
)

// ModeChange is what an entry makes of a node where it switches MIG on: the layouts of
// the GPUs that are partitioned then, how many are whole, and which are not as before.
type ModeChange struct {
	Layouts map[int]placement.Layout
	Whole   int
	Remade  []int
}

// modeOf is false for entries that switch nothing on, that switch something off, or that
// cannot be: all GPUs of a node are reset for it, which a sick one may not survive.
func (e migEntry) modeOf(n *Node) (ModeChange, bool) {
	m := ModeChange{Layouts: map[int]placement.Layout{}}
	switched := false
	for _, g := range n.Geometry.Report.GPUs {
		rule, selected := e.ruleFor(n, g.Index)
		on := g.MIG != nil && g.MIG.Current
		switch {
		case sick(g), g.MIG != nil && g.MIG.Current != g.MIG.Pending, selected && rule.MIGEnabled && g.MIG == nil, selected && on && !rule.MIGEnabled:
			return m, false
		case !on && (!selected || !rule.MIGEnabled):
			m.Whole++
			continue
		}
		grid, err := placement.GridOf(g)
		if err != nil {
			return m, false
		}
		now := placement.Layout{}
		for _, in := range g.Instances {
			now[in.Profile]++
		}
		layout := now
		if selected {
			layout = rule.layout()
		}
		if _, ok := grid.Place(layout); !ok {
			return m, false
		}
		m.Layouts[g.Index] = layout
		if !on || !maps.Equal(layout, now) {
			m.Remade = append(m.Remade, g.Index)
		}
		switched = switched || !on
	}
	return m, switched
}

// ruleFor is the last rule of the entry that is about the GPU.
func (e migEntry) ruleFor(n *Node, index int) (MIGRule, bool) {
	for _, rule := range slices.Backward(e) {
		if rule.Selects(index) && (len(rule.DeviceFilter) == 0 || rule.FilterMatches(n)) {
			return rule, true
		}
	}
	return MIGRule{}, false
}
