package rca

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// revert goes back to the last layout that worked where MIG manager fails on another: the
// one that the GPUs still have, where that is an entry of the node's config, else the one
// that was in force before a plan of ours. Where neither is known a person has to say.
//
// To the layout that the GPUs have nobody has to leave: MIG manager finds nothing to do,
// starts again what it had paused, and says success (mig-parted
// pkg/mig/reconfigure/reconfigure.go, Run and setState).
func (c *Bench) revert(n *nodeView, cause CauseID) change {
	if op := n.operation(); op.PriorMIGConfig != "" && op.PriorMIGConfig != n.Labels[labelMIGConfig] {
		ch := c.revertByHand(n, cause, op.PriorMIGConfig, "an operation of unpend's holds the node until a person has seen to it")
		ch.title = fmt.Sprintf("take %s back to %q, as it was before unpend's operation", n.Name, op.PriorMIGConfig)
		return ch
	}
	if why := n.unsureOfLayout(); why != "" {
		return c.revertByHand(n, cause, "NAME", why)
	}
	if same, ok := c.entryInForce(n); ok {
		return c.revertTo(n, cause, relayout{node: n, config: same.config, wanted: same.layouts, now: c.world.classOf(n).layouts, remade: []int{}}, "as its GPUs are laid out now")
	}
	named, ok := c.lastWorked(n)
	if !ok {
		return c.revertByHand(n, cause, "NAME", "its GPUs have what no entry of its config makes, and no plan of unpend's tells what was in force before")
	}
	r, ok := c.remakes(n, c.world.classOf(n).remakeBy(n, named.layouts))
	if !ok {
		return c.revertByHand(n, cause, named.config, "who is on its GPUs may not be evicted, or cannot be told")
	}
	r.config = named.config
	return c.revertTo(n, cause, r, "the last layout that worked"+evicting(r.victims))
}

// remakeLost makes the layout again that MIG manager says it has applied, and that the
// GPUs have no more: layouts do not always survive a reboot. It acts on a change of the
// label alone, so the entry that the GPUs have is asked for first, which changes nothing.
func (c *Bench) remakeLost(n *nodeView) []change {
	config := n.Labels[labelMIGConfig]
	if n.Labels[labelMIGState] != "success" || c.world.configOf(n).source == nil {
		return nil
	}
	for _, named := range c.world.namedLayouts(n) {
		if named.config != config || n.laidOut(named) || !named.legal {
			continue
		}
		if why := n.unsureOfLayout(); why != "" {
			return []change{c.revertByHand(n, MIGLayoutDrift, config, why)}
		}
		first, known := c.entryOf(n)
		r, ok := c.remakes(n, c.world.classOf(n).remakeBy(n, named.layouts))
		if !known || !ok {
			return []change{c.revertByHand(n, MIGLayoutDrift, config, "MIG manager acts on a change of the label, and its GPUs have what no entry makes, or holders that may not be evicted")}
		}
		r.config, r.first = config, first.config
		return []change{c.revertTo(n, MIGLayoutDrift, r, "which its GPUs have lost"+evicting(r.victims))}
	}
	return nil
}

// revertByHand is what a person has to do, and why.
func (c *Bench) revertByHand(n *nodeView, cause CauseID, config, why string) change {
	ch := change{kind: RevertMIGConfig, cause: cause, manual: true, minutes: 6, risk: MediumRisk, title: "take the MIG layout of " + n.Name + " back",
		untestable: "by hand: " + why}
	label := fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, labelMIGConfig, config)
	if config == "NAME" {
		label += "  # NAME: the last layout that worked"
	}
	ch.commands = append([]string{label}, n.startPaused()...)
	return ch
}

// startPaused is for a MIG manager that does not come round by itself.
func (n *nodeView) startPaused() []string {
	paused := n.pausedComponents()
	if len(paused) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("kubectl label node %s %s=true --overwrite  # if still paused once %s is success", n.Name, strings.Join(paused, "=true "), labelMIGState)}
}

// revertTo is what is applied. Where the layout has what the pod asks for that is proved
// like any other; else it mends the node, and the pod waits on.
func (c *Bench) revertTo(n *nodeView, cause CauseID, r relayout, how string) change {
	ch := change{kind: RevertMIGConfig, cause: cause, victims: r.victims, minutes: 4, risk: LowRisk, relayout: &r,
		title: fmt.Sprintf("take %s back to %q, %s", n.Name, r.config, how),
		node: func(o *corev1.Node) {
			after := r.after(n)
			if whole, ok := n.asReported()[wholeGPU]; ok {
				after[wholeGPU] = whole
			}
			maps.Copy(o.Status.Allocatable, after)
			maps.Copy(o.Status.Capacity, after)
			o.Labels[labelMIGConfig] = r.config
		},
		detail: func(ch *change) {
			r.detail(n, ch)
			ch.commands = append(ch.commands, n.startPaused()...)
		},
	}
	if len(r.remade) > 0 {
		ch.risk = MediumRisk
	}
	if !c.hasRoom(n, r) {
		ch.untestable = "it takes the node out of a layout that MIG manager does not make, and schedules none: this layout has nothing free of what is asked"
	}
	return ch
}

// hasRoom says whether the node has all that the pod asks for, once it has the layouts
// and the victims have left.
func (c *Bench) hasRoom(n *nodeView, r relayout) bool {
	after := r.after(n)
	maps.Copy(after, corev1.ResourceList{wholeGPU: n.asReported()[wholeGPU]})
	for _, a := range c.asks {
		left := after[a.resource]
		for _, p := range n.pods {
			if q, ok := n.requests[p][a.resource]; ok && !slices.Contains(r.victims, p) {
				left.Sub(q)
			}
		}
		if left.Value() < a.count {
			return false
		}
	}
	rest, ok := c.deficitsAfter(n, r)
	return ok && len(rest) == 0
}

// unsureOfLayout says why nobody can tell what the node's GPUs have, or what MIG manager
// would make of them; empty when it can be told.
func (n *nodeView) unsureOfLayout() string {
	switch {
	case n.doubt != "":
		return n.doubt
	case len(n.gpus) == 0:
		return "no GPU of it is known to be partitioned"
	case n.Labels[labelMIGStrategy] != "mixed":
		return fmt.Sprintf("under strategy %q what it advertises does not tell the layout", n.Labels[labelMIGStrategy])
	}
	return ""
}

// entryOf is the entry that makes exactly what the node's GPUs have, another than the one
// of its label; the first by name.
func (c *Bench) entryOf(n *nodeView) (namedLayouts, bool) {
	for _, named := range c.world.namedLayouts(n) {
		if named.config != n.Labels[labelMIGConfig] && n.laidOut(named) {
			return named, true
		}
	}
	return namedLayouts{}, false
}

// entryInForce is entryOf, unless the GPUs have no instance: nobody wants that back.
func (c *Bench) entryInForce(n *nodeView) (namedLayouts, bool) {
	for _, layout := range c.world.classOf(n).layouts {
		if len(layout) > 0 {
			return c.entryOf(n)
		}
	}
	return namedLayouts{}, false
}

// lastWorked is the entry that was in force on the node, by what plans of ours have come
// to: what the newest has made, or what it found.
func (c *Bench) lastWorked(n *nodeView) (namedLayouts, bool) {
	for _, o := range c.past {
		for _, l := range o.Layouts {
			if l.Node != n.Name {
				continue
			}
			config := l.Was
			if o.Runs && l.Became != n.Labels[labelMIGConfig] {
				config = l.Became
			}
			for _, named := range c.world.namedLayouts(n) {
				if named.config == config && config != n.Labels[labelMIGConfig] && named.legal {
					return named, true
				}
			}
			return namedLayouts{}, false
		}
	}
	return namedLayouts{}, false
}

// laidOut says whether the GPUs have the counts of a named layout.
func (n *nodeView) laidOut(named namedLayouts) bool {
	for _, g := range n.gpus {
		if !maps.Equal(named.layouts[g.Index], g.Layout()) {
			return false
		}
	}
	return len(n.gpus) > 0
}
