package changes

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
)

// back is a node's way back to a layout that it had, or has.
type back struct {
	*Bench
	n     *view.Node
	cause diagnosis.CauseID
}

// revert goes back to the last layout that worked where MIG manager fails on another: the
// one that the GPUs still have, where that is an entry of the node's config, else the one
// that was in force before a plan of ours. Where neither is known a person has to say.
//
// To the layout that the GPUs have nobody has to leave: MIG manager finds nothing to do,
// starts again what it had paused, and says success (mig-parted
// pkg/mig/reconfigure/reconfigure.go, Run and setState).
func (c *Bench) revert(n *view.Node, cause diagnosis.CauseID) edit.Change {
	b := back{c, n, cause}
	if op := n.Operation(); op.PriorMIGConfig != "" && op.PriorMIGConfig != n.Labels[view.LabelMIGConfig] {
		ch := b.byHand(op.PriorMIGConfig, "an operation of unpend's holds the node until a person has seen to it")
		ch.Title = fmt.Sprintf("take %s back to %q, as it was before unpend's operation", n.Name, op.PriorMIGConfig)
		return ch
	}
	if why := unsureOfLayout(n); why != "" {
		return b.byHand("NAME", why)
	}
	if same, ok := b.entryInForce(); ok {
		return b.to(relayout.Way{Node: n, Config: same.Config, Wanted: same.Layouts, Now: c.Cluster.ClassOf(n).Layouts, Remade: []int{}}, "as its GPUs are laid out now")
	}
	named, ok := b.lastWorked()
	if !ok {
		return b.byHand("NAME", "the layout that its GPUs have is no entry of its mig-parted config, and unpend has no record of the one before")
	}
	r, ok := c.layouts().Remakes(n, c.Cluster.ClassOf(n).RemakeBy(n, named.Layouts))
	if !ok {
		return b.byHand(named.Config, "the pods on its GPUs may not be evicted, or are not known")
	}
	r.Config = named.Config
	return b.to(r, "the last layout that worked"+edit.Evicting(r.Victims))
}

// remakeLost makes the layout again that MIG manager says it has applied, and that the
// GPUs have no more: layouts do not always survive a reboot. It acts on a change of the
// label alone, so the entry that the GPUs have is asked for first, which changes nothing.
func (c *Bench) remakeLost(n *view.Node) []edit.Change {
	b, config := back{c, n, diagnosis.MIGLayoutDrift}, n.Labels[view.LabelMIGConfig]
	if n.Labels[view.LabelMIGState] != "success" || c.Cluster.ConfigOf(n).Source == nil {
		return nil
	}
	for _, named := range c.Cluster.NamedLayouts(n) {
		if named.Config != config || laidOut(n, named) || !named.Legal {
			continue
		}
		if since, deaf := layouts.Unheard(n); deaf {
			ch := mend.Reapply(c.Workload, n, fmt.Sprintf("what keeps it from acting on the label since %s its log tells", since.UTC().Format("15:04 MST")))
			ch.Title = fmt.Sprintf("restart MIG manager of %s, which has not acted on %q", n.Name, config)
			return []edit.Change{ch}
		}
		if why := unsureOfLayout(n); why != "" {
			return []edit.Change{b.byHand(config, why)}
		}
		first, known := b.entryOf()
		r, ok := c.layouts().Remakes(n, c.Cluster.ClassOf(n).RemakeBy(n, named.Layouts))
		if !known || !ok {
			return []edit.Change{b.byHand(config, "MIG manager acts on a change of the label, and its GPUs have what no entry makes, or holders that may not be evicted")}
		}
		r.Config, r.First = config, first.Config
		return []edit.Change{b.to(r, "which its GPUs have lost"+edit.Evicting(r.Victims))}
	}
	return nil
}

// awaitsMIGOff says that the pod asks whole GPUs, and that the label of the node's layout is to
// switch MIG off, which the layout before had on.
func (c *Bench) awaitsMIGOff(n *view.Node) bool {
	entry, known := c.Cluster.ConfigOf(n).Entries[n.Labels[view.LabelMIGConfig]]
	return known && len(entry) > 0 && len(c.Asks) > 0 &&
		!slices.ContainsFunc(entry, func(r view.MIGRule) bool { return r.MIGEnabled }) &&
		!slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return a.Profile != "" })
}

// byHand is what a person has to do, and why.
func (b back) byHand(config, why string) edit.Change {
	ch := edit.Change{Kind: diagnosis.RevertMIGConfig, Cause: b.cause, Manual: true, Minutes: 6, Risk: diagnosis.MediumRisk, Title: "take the MIG layout of " + b.n.Name + " back",
		Untestable: "by hand: " + why}
	ch.Commands = append([]string{mend.LabelWith(b.Workload, b.n, config)}, mend.StartPaused(b.n)...)
	if config == "NAME" { // to a layout that its GPUs have not, so nobody may be on them
		ch.Drained = b.n.GPUHolders()
	}
	return ch
}

// to is what is applied. Where the layout has what the pod asks for that is proved
// like any other; else it mends the node, and the pod waits on.
func (b back) to(r relayout.Way, how string) edit.Change {
	ch := edit.Change{Kind: diagnosis.RevertMIGConfig, Cause: b.cause, Victims: r.Victims, Minutes: 4, Risk: diagnosis.LowRisk, Relayout: &r,
		Title: fmt.Sprintf("take %s back to %q, %s", b.n.Name, r.Config, how),
		Node: func(o *corev1.Node) {
			after := r.After(b.n)
			if whole, ok := b.n.Offers()[view.WholeGPU]; ok {
				after[view.WholeGPU] = whole
			}
			maps.Copy(o.Status.Allocatable, after)
			maps.Copy(o.Status.Capacity, after)
			o.Labels[view.LabelMIGConfig] = r.Config
		},
		Detail: func(ch *edit.Change) {
			detail(&r, b.n, ch)
			ch.Commands = append(ch.Commands, mend.StartPaused(b.n)...)
		},
	}
	if len(r.Remade) > 0 {
		ch.Risk = diagnosis.MediumRisk
	}
	if !b.hasRoom(r) {
		ch.Untestable = "it takes the node out of a layout that MIG manager does not make, and schedules none: the layout has none free of what the pod asks"
	}
	return ch
}

// hasRoom says whether the node has all that the pod asks for, once it has the layouts
// and the victims have left.
func (b back) hasRoom(r relayout.Way) bool {
	after := r.After(b.n)
	maps.Copy(after, corev1.ResourceList{view.WholeGPU: b.n.Offers()[view.WholeGPU]})
	for _, a := range b.Asks {
		left := after[a.Resource]
		for _, p := range b.n.Pods {
			if q, ok := b.n.Requests[p][a.Resource]; ok && !slices.Contains(r.Victims, p) {
				left.Sub(q)
			}
		}
		if left.Value() < a.Count {
			return false
		}
	}
	rest, ok := b.deficitsAfter(b.n, r)
	return ok && len(rest) == 0
}

// unsureOfLayout says why nobody can tell what the node's GPUs have, or what MIG manager
// would make of them; empty when it can be told.
func unsureOfLayout(n *view.Node) string {
	switch {
	case n.Doubt != "":
		return n.Doubt
	case n.SickText() != "":
		return n.SickText() + " of it is unhealthy: what MIG manager could make of it nobody knows"
	case len(n.GPUs) == 0:
		return "no GPU of it is known to be partitioned"
	case n.Labels[view.LabelMIGStrategy] != "mixed":
		return fmt.Sprintf("under strategy %q what it advertises does not tell the layout", n.Labels[view.LabelMIGStrategy])
	}
	return ""
}

// entryOf is the entry that makes exactly what the node's GPUs have, another than the one
// of its label; the first by name.
func (b back) entryOf() (view.NamedLayouts, bool) {
	for _, named := range b.Cluster.NamedLayouts(b.n) {
		if named.Config != b.n.Labels[view.LabelMIGConfig] && laidOut(b.n, named) {
			return named, true
		}
	}
	return view.NamedLayouts{}, false
}

// entryInForce is entryOf, unless the GPUs have no instance: nobody wants that back.
func (b back) entryInForce() (view.NamedLayouts, bool) {
	for _, layout := range b.Cluster.ClassOf(b.n).Layouts {
		if len(layout) > 0 {
			return b.entryOf()
		}
	}
	return view.NamedLayouts{}, false
}

// lastWorked is the entry that was in force on the node, by what plans of ours have come
// to: what the newest has made, or what it found.
func (b back) lastWorked() (view.NamedLayouts, bool) {
	for _, o := range b.Past {
		for _, l := range o.Layouts {
			if l.Node != b.n.Name {
				continue
			}
			config := l.Was
			if o.Runs && l.Became != b.n.Labels[view.LabelMIGConfig] {
				config = l.Became
			}
			for _, named := range b.Cluster.NamedLayouts(b.n) {
				if named.Config == config && config != b.n.Labels[view.LabelMIGConfig] && named.Legal {
					return named, true
				}
			}
			return view.NamedLayouts{}, false
		}
	}
	return view.NamedLayouts{}, false
}

// laidOut says whether the GPUs have the counts of a named layout.
func laidOut(n *view.Node, named view.NamedLayouts) bool {
	for _, g := range n.GPUs {
		if !maps.Equal(named.Layouts[g.Index], g.Layout()) {
			return false
		}
	}
	return len(n.GPUs) > 0
}
