package rca

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxTries bounds the proofs for one set of kinds: candidates come cheapest
	// first, so the first that is accepted is the best of its set.
	maxTries = 12
	// maxSets bounds the combinations of alternatives on one node.
	maxSets = 64
)

// fixes computes, proves and orders what can be done.
func (c *finder) fixes(ctx context.Context, nodes []NodeBlockers, causes []Cause) (Found, error) {
	raised, err := c.raises(ctx)
	if err != nil {
		return nil, fmt.Errorf("try preemption: %w", err)
	}
	best, err := c.bestOf(ctx, append(c.candidates(nodes), raised...), c.prove)
	if err != nil {
		return nil, err
	}
	return c.ranked(append(best, c.besides()...), causes), nil
}

// besides is what is offered whatever is done on the nodes: it waits for what has been
// said, or cannot be tried.
func (c *finder) besides() []*candidate {
	var out []*candidate
	for _, r := range c.own {
		ch, ok := c.beside(r.ID)
		if !ok {
			continue
		}
		f := c.candidate(nil, []change{ch})
		f.beside, f.fix.Proof = true, Proof{Verdict: Waits, Why: "once " + ch.until}
		if ch.untestable != "" {
			f.fix.Proof = Proof{Verdict: Unproven, Why: ch.untestable}
		}
		out = append(out, f)
	}
	return out
}

// bestOf proves candidates, cheapest first, until each set of kinds has its best.
func (c *finder) bestOf(ctx context.Context, all []*candidate, prove func(context.Context, *candidate) error) ([]*candidate, error) {
	all = triable(all)
	slices.SortStableFunc(all, byCost)
	tries, best := map[string]int{}, map[string]*candidate{}
	for _, f := range all {
		set := f.kindsKey()
		b := best[set]
		if tries[set] >= maxTries || b != nil && b.stranded == 0 {
			continue
		}
		tries[set]++
		if err := prove(ctx, f); err != nil {
			return nil, fmt.Errorf("prove %q: %w", f.fix.Title, err)
		}
		c.trace(ctx, f)
		if f.fix.Proof.Verdict != Refuted && (b == nil || f.better(b)) {
			best[set] = f
		}
	}
	return bestOfKinds(slices.Collect(maps.Values(best))), nil
}

// bestOfKinds keeps the best of those that have come to be of one set of kinds: evictions all
// of whose victims land are moves.
func bestOfKinds(proved []*candidate) []*candidate {
	best := map[string]*candidate{}
	for _, f := range proved {
		key := fmt.Sprint(f.fix.Kinds)
		if b := best[key]; b == nil || cmp.Or(f.order(b, true), strings.Compare(f.fix.Title, b.fix.Title)) < 0 {
			best[key] = f
		}
	}
	return slices.Collect(maps.Values(best))
}

func byCost(a, b *candidate) int {
	return cmp.Or(rank(!a.endless())-rank(!b.endless()), a.order(b, false), strings.Compare(a.fix.Title, b.fix.Title))
}

// endless says of a wait that nobody knows how long it takes: 0 minutes are not the
// fewest.
func (f *candidate) endless() bool {
	return slices.ContainsFunc(f.changes, func(ch change) bool { return ch.kind == Wait && ch.minutes == 0 })
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
func (c *finder) ranked(out []*candidate, causes []Cause) []*candidate {
	if len(out) == 0 {
		out = append(out, c.manual(causes))
	}
	slices.SortFunc(out, func(a, b *candidate) int { return cmp.Or(a.order(b, true), strings.Compare(a.fix.Title, b.fix.Title)) })
	for i, f := range out {
		f.fix.ID = i + 1
		f.detail(c.Bench)
		f.fix.Plan = PlanHash(f.fix.Actions)
	}
	return out
}

// trace logs a fix that was tried. What is refuted is shown to nobody, and this is
// where it can be seen.
func (c *finder) trace(ctx context.Context, f *candidate) {
	if c.logger == nil || !c.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	tried := *f
	tried.detail(c.Bench)
	c.logger.DebugContext(ctx, "fix tried", "incident", c.Incident.ID, "verdict", tried.fix.Proof.Verdict, "fix", tried.fix)
}

// candidates combines, node by node, one change for each cause of the node, so
// that a fix clears every blocker and not only the first.
func (c *finder) candidates(nodes []NodeBlockers) []*candidate {
	var out []*candidate
	seen := map[string]bool{}
	c.free, c.first = map[string]int{}, map[string][]*candidate{}
	own, ok := c.ownSets()
	if !ok {
		return nil
	}
	if c.isOwn(PreemptionBlocked) { // room is being made already
		for _, set := range own {
			out = append(out, c.candidate(nil, set))
		}
		return out
	}
	if c.gang.short() && c.gang.missing() == 0 {
		for _, set := range c.gangSets(own) {
			out = append(out, c.candidate(nil, set))
		}
		if c.isOwn(GangIncomplete) {
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
	for _, v := range nodes {
		n := c.node(v.Name)
		var policy, short []CauseID
		for _, b := range v.Blockers {
			id := b.Cause
			switch {
			case c.isOwn(id): // cleared by what is done for the pod
			case b.Plugin == "NodeResourcesFit" && !slices.Contains(short, id):
				short = append(short, id)
			case b.Plugin != "NodeResourcesFit" && !slices.Contains(policy, id):
				policy = append(policy, id)
			}
		}
		for _, set := range c.setsFor(n, own, policy, short) {
			f := c.candidate(n, set)
			set := f.kindsKey()
			if key := f.fix.Title + "\x00" + set; !seen[key] {
				seen[key] = true
				out = append(out, f)
				c.rank(set, f)
				if len(f.victims) == 0 {
					c.free[set]++
				}
			}
		}
	}
	return out
}

// ownSets are the alternatives for what is the pod's own; false when one of its
// causes admits none.
func (c *finder) ownSets() ([][]change, bool) {
	sets := [][]change{nil}
	for _, r := range c.own {
		if r.Aside {
			continue
		}
		var next [][]change
		for _, ch := range c.ofPod(r.ID) {
			ch.cause = r.ID
			for _, s := range sets {
				next = append(next, append(slices.Clone(s), ch))
			}
		}
		sets = next
	}
	return sets, len(sets) > 0
}

// setsFor is the product of the alternatives for each cause, on top of those for
// what is the pod's own; nil when a cause admits none.
func (c *finder) setsFor(n *nodeView, own [][]change, policy, short []CauseID) [][]change {
	sets := own
	product := func(options [][]change) {
		next := make([][]change, 0, len(sets)*len(options))
		for _, s := range sets {
			for _, o := range options {
				next = append(next, slices.Concat(s, o))
			}
		}
		sets = next[:min(len(next), maxSets)]
	}
	for _, id := range policy {
		var options [][]change
		for _, ch := range c.ofPolicy(n, id) {
			options = append(options, []change{ch})
		}
		product(options)
	}
	if slices.Contains(short, MIGConfigInProgress) {
		product(c.waitForManager(n))
	} else if len(short) > 0 {
		product(c.resourceChanges(c, n, short, sets))
	}
	if len(policy)+len(short)+len(own[0]) == 0 {
		return nil
	}
	return sets
}

// waitForManager leaves a layout that is being made alone.
func (c *finder) waitForManager(n *nodeView) [][]change {
	name := n.Labels[labelMIGConfig]
	ch := change{kind: Wait, cause: MIGConfigInProgress, manual: true, risk: NoRisk, minutes: 5,
		until: "MIG manager has applied " + name, title: "wait until MIG manager has applied " + name + " on " + n.Name,
		commands: []string{"kubectl get node " + n.Name + " -L " + labelMIGState + " -w"}}
	for _, named := range c.world.namedLayouts(n) {
		if named.config == name {
			ch.node = func(o *corev1.Node) {
				maps.Copy(o.Status.Allocatable, relayout{node: n, wanted: named.layouts, now: c.world.classOf(n).layouts}.after(n))
			}
		}
	}
	if ch.node == nil && c.mayMake(n, name) {
		ch.untestable = "what " + name + " makes of the GPUs cannot be told before it is done"
	}
	return [][]change{{ch}}
}

// mayMake says whether an entry of the node's config that no copy can show (nothing
// reports the GPUs, or their MIG mode changes) could make what is asked.
func (c *finder) mayMake(n *nodeView, name string) bool {
	entry, known := c.world.configOf(n).entries[name]
	for _, a := range c.asks {
		if known && a.profile != "" && !slices.ContainsFunc(entry, func(r migRule) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(r.MIGDevices)), func(p string) bool { return spelled(p) == a.profile })
		}) {
			return false
		}
	}
	return true
}

// manual is offered when nothing computed was accepted.
func (c *finder) manual(causes []Cause) *candidate {
	says := "the facts do not settle it"
	if len(causes) > 0 {
		says = string(causes[0].ID) + " admits no change that could be tried"
	}
	describe := "pod " + c.Pod.Name
	if c.unborn {
		describe = c.workloadName()
	}
	f := c.candidate(nil, []change{{kind: Manual, manual: true, risk: NoRisk, title: "look at the pod and the nodes", commands: []string{
		fmt.Sprintf("kubectl -n %s describe %s", c.Pod.Namespace, describe),
		"kubectl describe nodes",
	}}})
	f.fix.Proof = Proof{Verdict: Unproven, Why: says}
	return f
}
