package rca

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// modeChanges lists what MIG manager could do for the request by switching MIG on. The
// GPUs are reset for it, or the node is rebooted, so all of the node's pods leave but
// those that belong to it.
func (c *Bench) modeChanges(n *nodeView, a ask) []relayout {
	if n.geometry == nil || n.unreadable || !n.holdersKnown || n.geometry.Report.Source != nodeprobe.SourceNVML || n.manager().strategy != "mixed" {
		return nil
	}
	var ways []*namedMode
	for i, m := range c.world.modesOf(n) {
		if m.config != n.manager().config && m.made[a.profile] >= a.count {
			ways = append(ways, &c.world.modesOf(n)[i])
		}
	}
	if len(ways) == 0 {
		return nil
	}
	leave, ok := c.emptied(n)
	if !ok {
		return nil
	}
	out := make([]relayout, len(ways))
	for i, m := range ways {
		out[i] = relayout{node: n, config: m.config, wanted: m.change.layouts, remade: m.change.remade, victims: leave, mode: &m.change}
	}
	return out
}

// emptied are the pods that leave when all of a node's do; false when one may not.
func (c *Bench) emptied(n *nodeView) ([]*corev1.Pod, bool) {
	var leave []*corev1.Pod
	for _, p := range n.pods {
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node") {
			continue
		}
		for _, p := range c.world.together(p) {
			if !c.mayLeave(p) {
				return nil, false
			}
			if !slices.Contains(leave, p) {
				leave = append(leave, p)
			}
		}
	}
	return leave, true
}

// modeChange is what an entry makes of a node where it switches MIG on: the layouts of
// the GPUs that are partitioned then, how many are whole, and which are not as before.
type modeChange struct {
	layouts map[int]placement.Layout
	whole   int
	remade  []int
}

// modeOf is false for entries that switch nothing on, that switch something off, or that
// cannot be.
func (e migEntry) modeOf(n *nodeView) (modeChange, bool) {
	m := modeChange{layouts: map[int]placement.Layout{}}
	switched := false
	for _, g := range n.geometry.Report.GPUs {
		rule, selected := e.ruleFor(n, g.Index)
		on := g.MIG != nil && g.MIG.Current
		switch {
		case g.MIG != nil && g.MIG.Current != g.MIG.Pending, selected && rule.MIGEnabled && g.MIG == nil, selected && on && !rule.MIGEnabled:
			return m, false
		case !on && (!selected || !rule.MIGEnabled):
			m.whole++
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
		m.layouts[g.Index] = layout
		if !on || !maps.Equal(layout, now) {
			m.remade = append(m.remade, g.Index)
		}
		switched = switched || !on
	}
	return m, switched
}

// ruleFor is the last rule of the entry that is about the GPU.
func (e migEntry) ruleFor(n *nodeView, index int) (migRule, bool) {
	for _, rule := range slices.Backward(e) {
		if rule.selects(index) && (len(rule.DeviceFilter) == 0 || rule.filterMatches(n)) {
			return rule, true
		}
	}
	return migRule{}, false
}
