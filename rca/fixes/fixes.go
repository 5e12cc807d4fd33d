package fixes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/changes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
)

const (
	// maxTries bounds the proofs for one set of kinds: candidates come cheapest
	// first, so the first that is accepted is the best of its set.
	maxTries = 12
	// maxManyTries bounds the same for more pods than one: what is dearer there is offered
	// for fewer or for more.
	maxManyTries = 3
	// maxSets bounds the combinations of alternatives on one node.
	maxSets = 64
)

// Find computes, proves and orders what can be done.
func (c *Finder) Find(ctx context.Context, nodes []diagnosis.NodeBlockers, causes []diagnosis.Cause) (Found, error) {
	raised, err := c.raises(ctx)
	if err != nil {
		return nil, fmt.Errorf("try preemption: %w", err)
	}
	best, err := c.bestOf(ctx, append(c.candidates(nodes), raised...), c.prove)
	if err != nil {
		return nil, err
	}
	besides := c.besides()
	if c.placed(nodes) {
		for _, f := range slices.Concat(best, besides) {
			f.astray = slices.Contains(f.fix.Kinds, diagnosis.FixSelector)
		}
	}
	best = outdone(best, besides)
	out := append(best, slices.DeleteFunc(besides, func(f *candidate) bool { // what a node calls for as well is said once
		return slices.ContainsFunc(best, func(b *candidate) bool { return b.fix.Title == f.fix.Title })
	})...)
	return c.ranked(out, causes), nil
}

// placed says that the pod's selector leaves it a node, of those that have GPUs where it asks for some:
// what keeps it from there is not where it is to run.
func (c *Finder) placed(nodes []diagnosis.NodeBlockers) bool {
	return slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool {
		return (len(c.Asks) == 0 || len(c.Node(n.Name).Hardware()) > 0) && !slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return b.Cause == diagnosis.NodeSelectorMismatch })
	})
}

// besides is what is offered whatever is done on the nodes: it waits for what has been
// said, or cannot be tried.
func (c *Finder) besides() []*candidate {
	var out []*candidate
	for _, ch := range c.Besides() {
		f := c.candidate(nil, []edit.Change{ch})
		f.beside, f.fix.Proof = true, diagnosis.Proof{Verdict: diagnosis.Waits, Why: "once " + ch.Until}
		if ch.Untestable != "" {
			f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Unproven, Why: ch.Untestable}
		}
		out = append(out, f)
	}
	return out
}

// bestOf proves candidates, cheapest first, until each set of kinds has its best.
func (c *Finder) bestOf(ctx context.Context, all []*candidate, prove func(context.Context, *candidate) error) ([]*candidate, error) {
	all = triable(all)
	slices.SortStableFunc(all, byCost)
	tries, best := map[string]int{}, map[string]*candidate{}
	for _, f := range all {
		set := f.kindsKey()
		b := best[set]
		if tries[set] >= f.tries() || b != nil && b.best() {
			continue
		}
		tries[set]++
		if err := prove(ctx, f); err != nil {
			return nil, fmt.Errorf("prove %q: %w", f.fix.Title, err)
		}
		c.hold(f)
		c.trace(ctx, f)
		if f.fix.Proof.Verdict != diagnosis.Refuted && (b == nil || f.better(b)) {
			best[set] = f
		}
	}
	proved := slices.Collect(maps.Values(best))
	return bestOfKinds(slices.DeleteFunc(slices.Clone(proved), func(f *candidate) bool { return f.needless(proved) || f.dear(proved) })), nil
}

// bestOfKinds keeps the best fix of each set of kinds, and those that let fewer run for
// less. A proof may have changed the kinds: evictions are moves where every victim lands.
// Of two that do the same and were found for some pods and for more, the latter is told.
func bestOfKinds(proved []*candidate) []*candidate {
	slices.SortFunc(proved, func(a, b *candidate) int {
		return cmp.Or(a.order(b, true), strings.Compare(a.fix.Title, b.fix.Title), cmp.Compare(b.pods, a.pods), strings.Compare(a.kindsKey(), b.kindsKey()))
	})
	kept := map[string][]*candidate{}
	for _, f := range proved {
		key := fmt.Sprint(f.fix.Kinds, slices.ContainsFunc(f.changes, unopened))
		if !slices.ContainsFunc(kept[key], func(b *candidate) bool {
			return b.fix.Effect == nil || f.fix.Effect == nil || f.cost.Compare(b.cost) >= 0 || f.fix.Effect.Runs >= b.fix.Effect.Runs
		}) {
			kept[key] = append(kept[key], f)
		}
	}
	return slices.Concat(slices.Collect(maps.Values(kept))...)
}

func (f *candidate) tries() int {
	if f.pods > 1 {
		return maxManyTries
	}
	return maxTries
}

func byCost(a, b *candidate) int {
	return cmp.Or(view.Rank(!a.endless())-view.Rank(!b.endless()), a.order(b, false), strings.Compare(a.fix.Title, b.fix.Title))
}

// endless says of a wait that nobody knows how long it takes: 0 minutes are not the
// fewest.
func (f *candidate) endless() bool {
	return slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Kind == diagnosis.Wait && ch.Minutes == 0 })
}

// triable leaves of each set of kinds those that come first: no more are tried.
func triable(all []*candidate) []*candidate {
	first := map[string][]*candidate{} // by cost; of equals those that came first
	keep := map[*candidate]bool{}
	for _, f := range all {
		set := f.kindsKey()
		list := first[set]
		if len(list) == maxTries && byCost(f, list[maxTries-1]) >= 0 {
			continue
		}
		if keep[f] = true; len(list) == maxTries {
			delete(keep, list[maxTries-1])
			list = list[:maxTries-1]
		}
		at, _ := slices.BinarySearchFunc(list, f, func(other, f *candidate) int {
			if byCost(other, f) <= 0 {
				return -1 // behind its equals
			}
			return 1
		})
		first[set] = slices.Insert(list, at, f)
	}
	return slices.DeleteFunc(all, func(f *candidate) bool { return !keep[f] })
}

// ranked puts the best first and writes them out; a person has to look where there is
// none.
func (c *Finder) ranked(out []*candidate, causes []diagnosis.Cause) []*candidate {
	for _, left := range []func([]diagnosis.Cause) []*candidate{c.firstSteps, c.another, c.manual} {
		if len(out) == 0 {
			out = left(causes)
		}
	}
	if onlyApart(out) { // to be let on nodes that are kept for others is no help by itself
		out = append(out, c.room(causes)...)
	}
	slices.SortFunc(out, func(a, b *candidate) int { return cmp.Or(a.order(b, true), strings.Compare(a.fix.Title, b.fix.Title)) })
	for i, f := range out {
		f.fix.ID, f.fix.Class = i+1, f.class()
		f.detail(c.Bench)
		f.fix.Plan = f.fix.Named(c.Incident.ID, c.Incident.Since)
	}
	return out
}

// trace logs a fix that was tried. What is refuted is shown to nobody, and this is
// where it can be seen.
func (c *Finder) trace(ctx context.Context, f *candidate) {
	if c.logger == nil || !c.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	tried := *f
	tried.detail(c.Bench)
	c.logger.DebugContext(ctx, "fix tried", "incident", c.Incident.ID, "verdict", tried.fix.Proof.Verdict, "fix", tried.fix)
}

// candidates combines, node by node, one change for each cause of the node, so
// that a fix clears every blocker and not only the first.
func (c *Finder) candidates(nodes []diagnosis.NodeBlockers) []*candidate {
	var out []*candidate
	c.victimless, c.first = map[string]int{}, map[string][]*candidate{}
	own, ok := c.ownSets()
	if !ok || c.BeyondNodes() {
		return nil
	}
	if c.IsOwn(diagnosis.PreemptionBlocked) || c.IsOwn(diagnosis.Unknown) && c.SchedulerFails() != "" { // room is being made already, or is there
		for _, set := range own {
			out = append(out, c.candidate(nil, set))
		}
		return out
	}
	if c.Gang.Incomplete() && c.Gang.Missing() == 0 {
		for _, set := range c.gangSets(own) {
			out = append(out, c.candidate(nil, set))
		}
		if c.IsOwn(diagnosis.GangIncomplete) {
			return out // what is done on one node for one pod is of no use
		}
	}
	if len(nodes) == 0 {
		for _, set := range own {
			if len(set) > 0 {
				out = append(out, c.candidate(nil, set))
			}
		}
	}
	out = append(out, c.onNodes(nodes, own)...)
	return append(out, c.forMany(nodes, own, out)...)
}

// onNodes are the candidates for each of the nodes, on top of those for what is the pod's
// own.
func (c *Finder) onNodes(nodes []diagnosis.NodeBlockers, own [][]edit.Change) []*candidate {
	var out []*candidate
	seen := map[string]bool{}
	for _, v := range nodes {
		if c.IsFellows(v.Name) { // the pod that a fix is proved with is not meant for it
			continue
		}
		n := c.Node(v.Name)
		var policy, shortages []diagnosis.CauseID
		for _, b := range v.Blockers {
			id, short := b.Cause, b.Plugin == "NodeResourcesFit" && b.Cause != diagnosis.NodeNotReady // which offers nothing until it is
			switch {
			case c.IsOwn(id): // cleared by what is done for the pod
			case short && !slices.Contains(shortages, id):
				shortages = append(shortages, id)
			case !short && !slices.Contains(policy, id):
				policy = append(policy, id)
			}
		}
		for _, set := range c.setsFor(n, own, policy, shortages) {
			f := c.candidate(n, set)
			set := f.kindsKey()
			if key := f.fix.Title + "\x00" + set; !seen[key] {
				seen[key] = true
				out = append(out, f)
				c.rank(set, f)
				if len(f.victims) == 0 && !f.held {
					c.victimless[set]++
				}
			}
		}
	}
	return out
}

// ownSets are the alternatives for what is the pod's own; false when one of its
// causes admits none.
func (c *Finder) ownSets() ([][]edit.Change, bool) {
	sets := [][]edit.Change{nil}
	for _, r := range c.Own {
		if r.Aside {
			continue
		}
		var next [][]edit.Change
		for _, ch := range c.OfPod(r.ID) {
			all := append([]edit.Change{ch}, ch.With...)
			for i := range all {
				all[i].Cause = r.ID
			}
			for _, s := range sets {
				next = append(next, append(slices.Clone(s), all...))
			}
		}
		sets = next
	}
	return sets, len(sets) > 0
}

// setsFor is the product of the alternatives for each cause, on top of those for
// what is the pod's own; nil when a cause admits none.
func (c *Finder) setsFor(n *view.Node, own [][]edit.Change, policy, shortages []diagnosis.CauseID) [][]edit.Change {
	sets := slices.DeleteFunc(slices.Clone(own), func(set []edit.Change) bool {
		return slices.ContainsFunc(set, func(ch edit.Change) bool { return ch.NeedlessOn != nil && ch.NeedlessOn(n) })
	})
	product := func(options [][]edit.Change) {
		next := make([][]edit.Change, 0, len(sets)*len(options))
		for _, s := range sets {
			for _, o := range options {
				next = append(next, slices.Concat(s, o))
			}
		}
		sets = next[:min(len(next), maxSets)]
	}
	if n.Taken() != "" {
		return c.ofTaken(n, sets, policy, shortages)
	}
	for _, id := range policy {
		var options [][]edit.Change
		for _, ch := range c.OfPolicy(n, id) {
			options = append(options, []edit.Change{ch})
		}
		product(options)
	}
	if slices.Contains(shortages, diagnosis.MIGConfigInProgress) {
		product(c.waitForManager(n))
	} else if len(shortages) > 0 {
		product(c.ResourceChanges(c, n, shortages, sets))
	}
	if len(policy)+len(shortages)+len(own[0]) == 0 {
		return nil
	}
	for i, set := range sets {
		sets[i] = c.inPlace(set)
	}
	return sets
}

// inPlace puts in place of changes what is enough beside the others of their set.
func (c *Finder) inPlace(set []edit.Change) []edit.Change {
	at := slices.IndexFunc(set, func(ch edit.Change) bool { return ch.Instead != nil })
	if at < 0 {
		return set
	}
	pod := c.Pod.DeepCopy()
	for _, ch := range set {
		if ch.Pod != nil {
			ch.Pod(pod)
		}
	}
	enough := set[at].Instead(pod)
	if enough == nil {
		return set
	}
	enough.Cause = set[at].Cause
	return append(slices.Delete(slices.Clone(set), at, at+1), *enough)
}

// ofTaken is what is offered about a node that somebody has taken, where nothing else than
// that, or what it is short of, keeps the pod from it.
func (c *Finder) ofTaken(n *view.Node, own [][]edit.Change, policy, shortages []diagnosis.CauseID) [][]edit.Change {
	if slices.ContainsFunc(policy, func(id diagnosis.CauseID) bool { return id != diagnosis.NodeCordoned }) {
		return nil
	}
	var sets [][]edit.Change
	for _, set := range own {
		for _, ch := range c.OfTaken(n, shortages) {
			sets = append(sets, append(slices.Clone(set), ch))
		}
	}
	return sets
}

// waitForManager leaves a layout that is being made alone.
func (c *Finder) waitForManager(n *view.Node) [][]edit.Change {
	name, ch := n.Labels[view.LabelMIGConfig], untilApplied(n)
	for _, named := range c.Cluster.NamedLayouts(n) {
		if named.Config == name {
			ch.Node = func(o *corev1.Node) {
				maps.Copy(o.Status.Allocatable, relayout.Way{Node: n, Wanted: named.Layouts, Now: c.Cluster.ClassOf(n).Layouts}.After(n))
			}
		}
	}
	if ch.Node == nil && c.mayMake(n, name) {
		ch.Untestable = "nobody knows what " + name + " makes of the GPUs before it is done"
	}
	return [][]edit.Change{{ch}}
}

func untilApplied(n *view.Node) edit.Change {
	name := n.Labels[view.LabelMIGConfig]
	return edit.Change{Kind: diagnosis.Wait, Cause: diagnosis.MIGConfigInProgress, Manual: true, Risk: diagnosis.NoRisk, Minutes: 5,
		Until: "MIG manager has applied " + name, Title: "wait until MIG manager has applied " + name + " on " + n.Name,
		Commands: []string{"kubectl get node " + n.Name + " -L " + view.LabelMIGState + " -w"}}
}

// mayMake says whether an entry of the node's config that no copy can show (nothing
// reports the GPUs, or their MIG mode changes) could make what is asked.
func (c *Finder) mayMake(n *view.Node, name string) bool {
	entry, known := c.Cluster.ConfigOf(n).Entries[name]
	for _, a := range c.Asks {
		if known && a.Profile != "" && !slices.ContainsFunc(entry, func(r view.MIGRule) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(r.MIGDevices)), func(p string) bool { return view.Spelled(p) == a.Profile })
		}) {
			return false
		}
	}
	return true
}

// firstSteps are what lets the pod in where a queue, a gate or a kubelet refuses it and no node that is there would
// take it then: nodes are asked for, and brought, only once it is let in.
func (c *Finder) firstSteps(causes []diagnosis.Cause) []*candidate {
	refused := c.Unborn && c.Refused != nil && len(c.Refused.All) > 0 // there is nothing to place before that is mended
	if !c.IsOwn(diagnosis.QueueNotAdmitted) && !c.IsOwn(diagnosis.SchedulingGated) && !c.IsOwn(diagnosis.KubeletAdmissionRefused) && !refused || c.BeyondNodes() {
		return nil
	}
	then := "what keeps it from nodes"
	for _, k := range causes {
		if len(k.Nodes) > 0 {
			then = string(k.ID)
			break
		}
	}
	sets, _ := c.ownSets()
	var out []*candidate
	for _, set := range sets {
		if len(set) == 0 {
			continue
		}
		f := c.candidate(nil, set)
		f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Unproven, Why: "then nothing that can be tried on a copy helps against " + then}
		if set[0].Untestable != "" {
			f.fix.Proof.Why = set[0].Untestable
		}
		if refused {
			f.fix.Proof.Why = "where its pods go then cannot be told before they are made"
		}
		out = append(out, f)
	}
	return out
}

// another node is what is left where none has what is asked, or those who hold it cannot leave for
// it: they are its own, say.
func (c *Finder) another(causes []diagnosis.Cause) []*candidate {
	if len(causes) == 0 || c.Cluster.State.Unread["Node"] != "" {
		return nil
	}
	switch causes[0].ID {
	case diagnosis.GPUsInUse, diagnosis.MIGInstancesInUse, diagnosis.MIGFull, diagnosis.GPURequestTooLarge:
	default:
		return nil
	}
	ch := changes.AnotherNode(c.Bench, causes[0].ID)
	f := c.candidate(nil, []edit.Change{ch})
	f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Unproven, Why: ch.Untestable}
	return []*candidate{f}
}

// onlyApart says whether all that was found is to be let on nodes of which nobody here knows whether they are for such pods.
func onlyApart(all []*candidate) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(f *candidate) bool {
		return f.fix.Kind != diagnosis.AddToleration || f.fix.Proof.Verdict != diagnosis.Unproven
	})
}

// room is what a person does for a pod that others leave too little for; none where that is not the matter.
func (c *Finder) room(causes []diagnosis.Cause) []*candidate {
	at := slices.IndexFunc(causes, func(a diagnosis.Cause) bool { return a.ID == diagnosis.HostResourcesShort })
	if at < 0 {
		return nil
	}
	return c.manual(causes[at : at+1])
}

// manual is offered when nothing computed was accepted.
func (c *Finder) manual(causes []diagnosis.Cause) []*candidate {
	says := "the facts do not settle it"
	if len(causes) > 0 {
		says = "nothing that can be tried on a copy helps against " + string(causes[0].ID)
	}
	describe := "pod " + c.Pod.Name
	if c.Unborn {
		describe = c.WorkloadName()
	}
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Title: "look at the pod and the nodes", Commands: []string{
		fmt.Sprintf("kubectl -n %s describe %s", c.Pod.Namespace, describe),
		"kubectl describe nodes",
	}}
	if len(causes) > 0 && causes[0].ID == diagnosis.HostResourcesShort {
		ch.Title = "bring a node that has room for it, or make room by hand"
		ch.Commands = []string{"kubectl get nodes -o custom-columns=NAME:.metadata.name,CPU:.status.allocatable.cpu,MEMORY:.status.allocatable.memory,PODS:.status.allocatable.pods",
			"kubectl describe nodes  # Allocated resources, and who runs there", "# then a node more, or larger ones, by the cloud's own command (how many pods a node takes is its kubelet's maxPods)"}
	}
	if len(causes) > 0 && causes[0].ID == diagnosis.MIGConfigInProgress && len(causes[0].Nodes) > 0 {
		ch = untilApplied(c.Node(causes[0].Nodes[0]))
		says = "what is being applied does not make what it asks for: another layout can be asked for once it is there, not before"
	}
	if len(causes) > 0 && causes[0].ID == diagnosis.UntoleratedTaint {
		if off := mend.Forgotten(c.Cluster, causes[0].Nodes); off != nil {
			ch, says = *off, off.Untestable
		}
	}
	f := c.candidate(nil, []edit.Change{ch})
	f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Unproven, Why: says}
	return []*candidate{f}
}
