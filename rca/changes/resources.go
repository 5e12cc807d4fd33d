package changes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
)

// Weigher says what is not worth working out: so much was found that costs less.
type Weigher interface {
	// enough says whether so many fixes of the kinds cost nobody anything that no more will
	// be tried.
	Enough(sets [][]edit.Change, more diagnosis.FixKind) bool
	// pointless says whether so many of the same kinds cost less than this change beside
	// the only set there is that it will not be tried.
	Pointless(n *view.Node, sets [][]edit.Change, ch *edit.Change) bool
}

// ResourceChanges lists the alternatives that make room for the pod on a node:
// each is complete for all the resources the node is short of, on top of the sets.
func (c *Bench) ResourceChanges(w Weigher, n *view.Node, causes []diagnosis.CauseID, sets [][]edit.Change) [][]edit.Change {
	var out [][]edit.Change
	lack, fits := n.DeficitsOf(c.Wants)
	root := causes[0]
	if i := slices.IndexFunc(causes, func(id diagnosis.CauseID) bool { return id != diagnosis.HostResourcesShort }); i >= 0 {
		root = causes[i] // the CPU is short beside a GPU that is free, or it is not the point
	}
	if fits && !n.Unreadable {
		for _, ch := range c.release(n, lack) {
			out = append(out, []edit.Change{ch})
		}
		if ch, ok := leaving(c, n, root, lack); ok {
			out = append(out, []edit.Change{ch})
		}
		if ch, ok := stopQueued(c, n, root, lack); ok {
			out = append(out, []edit.Change{ch})
		}
		if victims := cheapest(c, n, lack); !c.AllIdle(victims) { // all idle where nobody has to leave, or may
			out = append(out, []edit.Change{edit.EvictFrom(n, root, victims)})
			if ch, ok := c.move(n, root, lack, victims); ok {
				out = append(out, []edit.Change{ch})
			}
			if root != diagnosis.IdleGPUHolders && !slices.ContainsFunc(victims, func(p *corev1.Pod) bool { return slices.Contains(c.Stuck, p) }) { // who does nothing, or waits in vain, does not end either
				out = append(out, []edit.Change{c.WaitFor(n, root, c.whoEnds(n, lack, victims))})
			}
		} else if own, ok := c.OfNoTeam().CheapestOf(n, lack, view.EndsAlone); ok && len(own) > 0 && !c.IsOwn(diagnosis.WorkloadDeadlock) { // else they wait for the one that waits
			out = append(out, []edit.Change{c.WaitFor(n, root, own)})
		}
	}
	for _, a := range c.Asks {
		if n.Has(a.Resource, a.Count) {
			continue
		}
		if a.Profile != "" && slices.ContainsFunc(causes, func(id diagnosis.CauseID) bool { return remedies[id].layout }) && !w.Enough(sets, relayoutKind(root)) {
			for _, r := range c.layouts().Ways(n, a) {
				if set, ok := c.repartition(w, n, root, a, r, sets); ok {
					if why := mend.Doubtful(n, causes, r.Victims); why != "" {
						set[len(set)-1].Manual, set[len(set)-1].Untestable = true, why
					}
					out = append(out, set)
				}
			}
		}
		if slices.ContainsFunc(causes, mend.Unsettled) {
			continue
		}
		for _, ch := range c.changeGPURequest(n, root, a) {
			out = append(out, []edit.Change{ch})
		}
	}
	for _, ch := range c.repairs(n, causes, !slices.ContainsFunc(sets, func(s []edit.Change) bool { return len(s) > 0 })) {
		out = append(out, []edit.Change{ch})
	}
	if ch, ok := c.lowerRequest(n, lack, fits); ok {
		out = append(out, []edit.Change{ch})
	}
	return out
}

// cheapest are those whose leaving costs least. Whom the pod has to be near are the last to go: the node is one for it by them.
func cheapest(c *Bench, n *view.Node, lack view.Deficits) []*corev1.Pod {
	victims, _ := c.Cheapest(n, lack)
	if !slices.ContainsFunc(victims, c.Company.HasToBeNear) {
		return victims
	}
	if others, ok := c.CheapestOf(n, lack, func(p *corev1.Pod) bool { return !c.Company.HasToBeNear(p) }); ok {
		return others
	}
	return victims
}

// whoEnds are the holders to wait for: the cheapest of those who end by themselves, where they are
// enough, else those who would be evicted.
func (c *Bench) whoEnds(n *view.Node, lack view.Deficits, victims []*corev1.Pod) []*corev1.Pod {
	if len(view.Endless(victims)) == 0 {
		return victims
	}
	if ending, ok := c.CheapestOf(n, lack, view.EndsAlone); ok && len(ending) > 0 {
		return ending
	}
	return victims
}

// relayoutKind is what giving a node another layout is called.
func relayoutKind(cause diagnosis.CauseID) diagnosis.FixKind {
	if remedies[cause].config {
		return diagnosis.FixMIGConfig
	}
	return diagnosis.RepartitionGPU
}

// repartition gives the node another layout, with the evictions that the pod's
// other requests need beside it.
func (c *Bench) repartition(w Weigher, n *view.Node, cause diagnosis.CauseID, a view.Ask, r relayout.Way, sets [][]edit.Change) ([]edit.Change, bool) {
	rest, ok := c.deficitsBeside(n, a, r)
	if !ok {
		return nil, false
	}
	ch := edit.Change{Kind: relayoutKind(cause), Cause: cause, Victims: r.Victims, Cost: r.Cost, Minutes: 4, Risk: diagnosis.LowRisk, Relayout: &r}
	if r.Mode != nil {
		ch.Minutes, ch.Risk = 10, diagnosis.MediumRisk
	}
	if len(rest) == 0 && w.Pointless(n, sets, &ch) {
		return nil, false
	}
	c.describe(n, a, &ch)
	if len(rest) == 0 {
		return []edit.Change{ch}, true
	}
	victims, ok := c.CheapestOf(n, rest, func(p *corev1.Pod) bool { return !slices.Contains(r.Victims, p) })
	if !ok {
		return nil, false
	}
	return []edit.Change{edit.EvictFrom(n, c.heldBeside(rest), victims), ch}, true
}

// heldBeside is the cause that others than the victims of another layout leave for.
func (c *Bench) heldBeside(rest view.Deficits) diagnosis.CauseID {
	for _, b := range c.Asks {
		switch {
		case rest[b.Resource] == 0:
		case b.Profile == "":
			return diagnosis.GPUsInUse
		default:
			return diagnosis.MIGInstancesInUse
		}
	}
	return diagnosis.HostResourcesShort
}

// describe completes what repartitions a node.
func (c *Bench) describe(n *view.Node, a view.Ask, ch *edit.Change) {
	r := ch.Relayout
	ch.Title = "repartition " + gpuList(n, r.Remade) + " to " + strconv.Quote(r.Config) + edit.Evicting(r.Victims)
	if r.Mode != nil {
		ch.Title = fmt.Sprintf("switch MIG on for %s by %q%s", gpuList(n, r.Remade), r.Config, emptying(r.Victims))
	}
	ch.Node = func(o *corev1.Node) {
		for name, q := range r.After(n) {
			o.Status.Allocatable[name] = q
			o.Status.Capacity[name] = q
		}
		o.Labels[view.LabelMIGConfig] = r.Config
	}
	ch.Detail = func(ch *edit.Change) {
		if r.Mode == nil { // else the silicon needs a reset too
			ch.Hardware = c.layouts().HardwareEvictions(n, a)
		}
		detail(r, n, ch)
	}
}

// detail writes the repartition out, step by step.
func detail(r *relayout.Way, n *view.Node, ch *edit.Change) {
	action := &diagnosis.Relayout{Config: r.Config, First: r.First, Entry: r.Entry, Layouts: map[int]map[string]int{}, GPUs: r.Remade}
	for index, layout := range r.Layouts() {
		action.Layouts[index] = layout
	}
	ch.Steps = []string{"cordon " + n.Name}
	ch.Commands = []string{"kubectl cordon " + n.Name}
	for _, v := range r.Victims {
		action.Victims = append(action.Victims, view.PodTarget(v))
		ch.Steps = append(ch.Steps, "evict "+v.Namespace+"/"+v.Name)
		ch.Commands = append(ch.Commands, edit.EvictCommand(v))
	}
	if r.Into != nil {
		action.ConfigMap = &diagnosis.Target{Kind: "ConfigMap", Namespace: r.Into.Namespace, Name: r.Into.Name, UID: string(r.Into.UID)}
		ch.Steps = append(ch.Steps, fmt.Sprintf("add entry %s to configmap/%s", r.Config, r.Into.Name))
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s edit configmap/%s  # add %s: %s", r.Into.Namespace, r.Into.Name, r.Config, r.Entry))
	}
	if r.First != "" {
		ch.Steps = append(ch.Steps, fmt.Sprintf("set %s=%s, which its GPUs have: MIG manager acts on a change of the label", view.LabelMIGConfig, r.First))
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, view.LabelMIGConfig, r.First))
	}
	wait := "wait for MIG manager"
	if r.Mode != nil {
		wait += " (it resets the GPUs, or reboots the node)"
	}
	ch.Steps = append(ch.Steps, fmt.Sprintf("set %s=%s", view.LabelMIGConfig, r.Config), wait, "verify the layout",
		fmt.Sprintf("uncordon %s, unless somebody else has cordoned it; kubectl cordon leaves no trace meanwhile: kubectl annotate node %s %s=true keeps it closed", n.Name, n.Name, diagnosis.KeepCordoned))
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, view.LabelMIGConfig, r.Config), "kubectl uncordon "+n.Name)
	ch.Actions = []diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: view.NodeTarget(n.Node), Relayout: action, Relies: n.Relies()}}
}

// deficitsAfter is what the node lacks besides GPUs once the victims have left.
func (c *Bench) deficitsAfter(n *view.Node, r relayout.Way) (view.Deficits, bool) {
	if c.host == nil {
		c.host = maps.Clone(c.Wants)
		for _, a := range c.Asks {
			delete(c.host, a.Resource)
		}
	}
	lack, ok := n.DeficitsOf(c.host)
	for _, v := range r.Victims {
		for name := range lack {
			if lack[name] -= n.Contribution(v, name); lack[name] <= 0 {
				delete(lack, name)
			}
		}
	}
	return lack, ok
}

// deficitsBeside is deficitsAfter with what else the pod asks of GPUs than what the other
// layout is for; false where too few of it are there then, even if every pod leaves.
func (c *Bench) deficitsBeside(n *view.Node, a view.Ask, r relayout.Way) (view.Deficits, bool) {
	rest, ok := c.deficitsAfter(n, r)
	if !ok || len(c.Asks) == 1 {
		return rest, ok
	}
	if rest == nil {
		rest = view.Deficits{}
	}
	after := r.After(n)
	for _, b := range c.Asks {
		if b.Resource == a.Resource {
			continue
		}
		has, remade := after[b.Resource]
		if !remade {
			has = n.Status.Allocatable[b.Resource]
		}
		if has.Value() < b.Count {
			return nil, false
		}
		lack := n.HeldOf(b.Resource) + b.Count - has.Value()
		for _, p := range r.Victims {
			q := n.Requests[p][b.Resource]
			lack -= q.Value()
		}
		if lack > 0 {
			rest[b.Resource] = 1000 * lack
		}
	}
	return rest, true
}

func gpuList(n *view.Node, gpus []int) string {
	texts := make([]string, len(gpus))
	for i, g := range gpus {
		texts[i] = strconv.Itoa(g)
	}
	return n.Name + "/GPU " + strings.Join(texts, ",")
}

// emptying is evicting of a whole node.
func emptying(victims []*corev1.Pod) string {
	switch len(victims) {
	case 0:
		return ""
	case 1:
		return ", evicting the 1 pod of the node"
	}
	return fmt.Sprintf(", evicting all %d pods of the node", len(victims))
}
