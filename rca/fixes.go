package rca

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// candidate is a fix with what its ranking needs.
type candidate struct {
	fix     Fix
	node    *nodeView
	changes []change
	victims []*corev1.Pod
	cost    victimCost
	// stranded counts the victims that found no place on the copy.
	stranded int
	keeps    bool    // gives what was asked
	removes  CauseID // the cause its most disruptive change removes
}

const (
	// maxTries bounds the proofs for one set of kinds: candidates come cheapest
	// first, so the first that is accepted is the best of its set.
	maxTries = 12
	// maxSets bounds the combinations of alternatives on one node.
	maxSets = 64
)

// fixes computes, proves and orders what can be done.
func (c *Case) fixes(ctx context.Context, causes []Cause) ([]*candidate, error) {
	all := c.candidates()
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Or(a.order(b, false), strings.Compare(a.fix.Title, b.fix.Title)) })
	tries, best := map[string]int{}, map[string]*candidate{}
	for _, f := range all {
		set := f.kindsKey()
		b := best[set]
		if tries[set] >= maxTries || b != nil && b.stranded == 0 {
			continue
		}
		tries[set]++
		if err := c.prove(ctx, f); err != nil {
			return nil, fmt.Errorf("prove %q: %w", f.fix.Title, err)
		}
		if f.fix.Proof.Verdict != Refuted && (b == nil || f.better(b)) {
			best[set] = f
		}
	}
	out := slices.Collect(maps.Values(best))
	if len(out) == 0 {
		out = append(out, c.manual(causes))
	}
	slices.SortFunc(out, func(a, b *candidate) int { return cmp.Or(a.order(b, true), strings.Compare(a.fix.Title, b.fix.Title)) })
	for i, f := range out {
		f.fix.ID = i + 1
		f.detail()
		f.fix.Plan = PlanHash(f.fix.Actions)
	}
	return out, nil
}

// better says whether a candidate of the same kinds, tried later and so no cheaper, is
// worth its cost: when nobody is left waiting by it or, at the same cost, fewer are.
func (f *candidate) better(b *candidate) bool {
	return f.stranded < b.stranded && (f.stranded == 0 && f.fix.Proof.Verdict == b.fix.Proof.Verdict || b.order(f, false) == 0)
}

// candidates combines, node by node, one change for each cause of the node, so
// that a fix clears every blocker and not only the first.
func (c *Case) candidates() []*candidate {
	var out []*candidate
	seen := map[string]bool{}
	rules := Rules()
	own, ok := c.ownSets()
	if !ok {
		return nil
	}
	if len(c.verdict.Nodes) == 0 {
		for _, set := range own {
			if len(set) > 0 {
				out = append(out, c.candidate(nil, set))
			}
		}
	}
	for _, v := range c.verdict.Nodes {
		n := c.node(v.Node)
		var policy, short []CauseID
		for _, b := range v.Blockers {
			id, _ := tell(rules, c, n, b)
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
			if key := f.fix.Title + "\x00" + f.kindsKey(); !seen[key] {
				seen[key] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// isOwn says whether a cause that a node is told is the pod's own.
func (c *Case) isOwn(id CauseID) bool {
	return slices.ContainsFunc(c.own, func(r PodRule) bool { return r.ID == id })
}

// ownSets are the alternatives for what is the pod's own; false when one of its
// causes admits none.
func (c *Case) ownSets() ([][]change, bool) {
	sets := [][]change{nil}
	for _, r := range c.own {
		if r.Aside {
			continue
		}
		var next [][]change
		if r.changes != nil {
			for _, ch := range r.changes(c) {
				ch.cause = r.ID
				for _, s := range sets {
					next = append(next, append(slices.Clone(s), ch))
				}
			}
		}
		sets = next
	}
	return sets, len(sets) > 0
}

// setsFor is the product of the alternatives for each cause, on top of those for
// what is the pod's own; nil when a cause admits none.
func (c *Case) setsFor(n *nodeView, own [][]change, policy, short []CauseID) [][]change {
	sets := own
	product := func(options [][]change) {
		var next [][]change
		for _, s := range sets {
			for _, o := range options {
				next = append(next, append(slices.Clone(s), o...))
			}
		}
		sets = next[:min(len(next), maxSets)]
	}
	for _, id := range policy {
		var options [][]change
		for _, ch := range c.changesFor(n, id) {
			options = append(options, []change{ch})
		}
		product(options)
	}
	if slices.Contains(short, MIGConfigInProgress) {
		product(c.waitForManager(n))
	} else if len(short) > 0 {
		product(c.resourceChanges(n, short))
	}
	if len(policy)+len(short)+len(own[0]) == 0 {
		return nil
	}
	return sets
}

// waitForManager leaves a layout that is being made alone.
func (c *Case) waitForManager(n *nodeView) [][]change {
	name := n.Labels[labelMIGConfig]
	ch := change{kind: Wait, cause: MIGConfigInProgress, manual: true, risk: "none", minutes: 5,
		until: "MIG manager has applied " + name, title: "wait until MIG manager has applied " + name + " on " + n.Name,
		commands: []string{"kubectl get node " + n.Name + " -L " + labelMIGState + " -w"}}
	for _, named := range c.world.namedLayouts(n) {
		if named.config == name {
			ch.node = func(o *corev1.Node) { maps.Copy(o.Status.Allocatable, relayout{layouts: named.layouts}.after(n)) }
		}
	}
	return [][]change{{ch}}
}

func (c *Case) candidate(n *nodeView, set []change) *candidate {
	f := &candidate{node: n, changes: set, keeps: true, fix: Fix{Automatic: true, Mechanism: None, Risk: "none",
		Cost: Cost{Evictions: []PodName{}, Nodes: []string{}}, Steps: []string{}, Commands: []string{}}}
	var titles []string
	touches := false
	for _, ch := range set {
		f.fix.Kinds = append(f.fix.Kinds, ch.kind)
		titles = append(titles, ch.title)
		f.fix.Automatic = f.fix.Automatic && !ch.manual
		f.fix.Cost.Minutes += ch.minutes
		f.fix.Risk = riskier(f.fix.Risk, ch.risk)
		f.keeps = f.keeps && ch.kind != ChangeRequest && ch.kind != FixClaim
		if ch.kind != Wait {
			for _, v := range ch.victims { // two causes may take the same pod
				if !slices.Contains(f.victims, v) {
					f.victims = append(f.victims, v)
				}
			}
		}
		if ch.relayout != nil {
			f.fix.Mechanism = MIGManager
		}
		touches = touches || ch.node != nil && ch.kind != Wait || len(ch.victims) > 0 && ch.kind != Wait
	}
	if touches {
		f.fix.Cost.Nodes = []string{n.Name}
	}
	f.fix.Kind = mostDisruptive(f.fix.Kinds)
	f.removes = set[slices.IndexFunc(set, func(ch change) bool { return ch.kind == f.fix.Kind })].cause
	f.fix.Title = strings.Join(titles, "; ")
	for _, v := range f.victims {
		f.fix.Cost.Evictions = append(f.fix.Cost.Evictions, PodName{v.Namespace, v.Name})
	}
	f.cost = c.costOf(f.victims)
	return f
}

// detail writes out what is done, for the fixes that are shown.
func (f *candidate) detail() {
	for _, ch := range f.changes {
		if ch.detail != nil {
			ch.detail(&ch)
		}
		f.fix.Steps = append(f.fix.Steps, ch.steps...)
		f.fix.Commands = append(f.fix.Commands, ch.commands...)
		f.fix.Actions = append(f.fix.Actions, ch.actions...)
		if ch.hardware != nil {
			f.fix.HardwareEvictions = ch.hardware
		}
	}
}

func riskier(a, b string) string {
	order := []string{"none", "low", "medium", "high"}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

func (f *candidate) kindsKey() string { return fmt.Sprint(f.fix.Kinds) }

// order sorts fixes: schedules first · those that give what was asked · automatic ·
// those whose victims all find a place · victim cost · nodes · minutes · catalogue order. Refuted ones would come last.
// Without judged the verdict, which candidates do not have yet, is left out.
func (f *candidate) order(g *candidate, judged bool) int {
	verdicts := []Verdict{Schedules, "", Waits, Unproven, Refuted}
	verdict := 0
	if judged {
		verdict = slices.Index(verdicts, f.fix.Proof.Verdict) - slices.Index(verdicts, g.fix.Proof.Verdict)
	}
	stranding := 0
	if judged {
		stranding = rank(f.stranded == 0) - rank(g.stranded == 0)
	}
	return cmp.Or(
		verdict,
		rank(f.keeps)-rank(g.keeps),
		rank(f.fix.Automatic)-rank(g.fix.Automatic),
		stranding,
		f.cost.compare(g.cost),
		len(f.fix.Cost.Nodes)-len(g.fix.Cost.Nodes),
		f.fix.Cost.Minutes-g.fix.Cost.Minutes,
		slices.Index(fixOrder, f.fix.Kind)-slices.Index(fixOrder, g.fix.Kind),
	)
}

// manual is offered when nothing computed was accepted.
func (c *Case) manual(causes []Cause) *candidate {
	says := "the facts do not settle it"
	if len(causes) > 0 {
		says = string(causes[0].ID) + " admits no change that could be tried"
	}
	describe := "pod " + c.Pod.Name
	if c.unborn {
		describe = c.workloadName()
	}
	f := c.candidate(nil, []change{{kind: Manual, manual: true, risk: "none", title: "look at the pod and the nodes", commands: []string{
		fmt.Sprintf("kubectl -n %s describe %s", c.Pod.Namespace, describe),
		"kubectl describe nodes",
	}}})
	f.fix.Proof = Proof{Verdict: Unproven, Why: says}
	return f
}

func published(fixes []*candidate) []Fix {
	out := make([]Fix, len(fixes))
	for i, f := range fixes {
		out[i] = f.fix
	}
	return out
}
