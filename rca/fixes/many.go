package fixes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
)

// forMany are the candidates that make room for more pods of the incident than one: on one
// node for twice as many each time, and on several nodes together for as many as can be had.
func (c *Finder) forMany(nodes []diagnosis.NodeBlockers, own [][]edit.Change, forOne []*candidate) []*candidate {
	need := min(c.wanted(), maxProved)
	if need < 2 {
		return nil
	}
	all := roomMakers(forOne)
	for k := 2; ; k = min(2*k, need) {
		many := *c
		many.Bench, many.first, many.victimless = c.For(k), map[string][]*candidate{}, map[string]int{}
		found := roomMakers(many.onNodes(nodes, own))
		for _, f := range found {
			f.pods = k
		}
		if all = append(all, found...); len(found) == 0 || k == need {
			break
		}
	}
	return append(all[len(roomMakers(forOne)):], c.onSeveral(all, need)...)
}

// roomMakers are the candidates that have others leave a node, or another layout made of it,
// and do nothing else there.
func roomMakers(all []*candidate) []*candidate {
	var out []*candidate
	for _, f := range all {
		if f.node != nil && f.keeps && f.fix.Automatic && len(f.victims) > 0 || f.node != nil && f.keeps && slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Relayout != nil }) {
			out = append(out, f)
		}
	}
	return out
}

// share is what one node gives of a plan on several: the part, and the plan before it.
type share struct {
	part   *candidate
	before *share
	pods   int
	nodes  int
	cost   evict.Cost
}

func (a *share) compare(b *share) int {
	return cmp.Or(a.cost.Compare(b.cost), a.nodes-b.nodes)
}

// onSeveral are, for each set of kinds, the cheapest parts on several nodes that together
// make room for all that is needed, or for as many as there can be.
func (c *Finder) onSeveral(parts []*candidate, need int) []*candidate {
	byKinds, order := map[string][]*candidate{}, []string{}
	for _, f := range parts {
		key := kindsKey(f.changes, "")
		if byKinds[key] == nil {
			order = append(order, key)
		}
		byKinds[key] = append(byKinds[key], f)
	}
	var out []*candidate
	for _, key := range order {
		if s := cheapest(byKinds[key], need); s != nil && s.nodes > 1 {
			out = append(out, c.together(s))
		}
	}
	return out
}

// cheapest is a multiple-choice knapsack: of each node at most one part, as many pods as are
// needed or can be had, at the least cost. What is best for fewer pods is part of what is
// best for more, but where costs differ in their maximum alone.
func cheapest(parts []*candidate, need int) *share {
	slices.SortStableFunc(parts, func(a, b *candidate) int { return strings.Compare(a.node.Name, b.node.Name) })
	best := make([]*share, need+1)
	best[0] = &share{cost: evict.NoVictims}
	for len(parts) > 0 {
		node := parts[0].node
		n := slices.IndexFunc(parts, func(f *candidate) bool { return f.node != node })
		if n < 0 {
			n = len(parts)
		}
		next := slices.Clone(best)
		for _, f := range parts[:n] {
			for have, s := range best {
				if s == nil || have == need {
					continue
				}
				to := min(need, have+max(1, f.pods))
				with := &share{part: f, before: s, pods: to, nodes: s.nodes + 1, cost: s.cost.Plus(f.cost)}
				if next[to] == nil || with.compare(next[to]) < 0 {
					next[to] = with
				}
			}
		}
		best, parts = next, parts[n:]
	}
	for _, s := range slices.Backward(best[1:]) {
		if s != nil {
			return s
		}
	}
	return nil
}

// together is one candidate of the parts. GPUs of one node at a time are re-made: where
// several nodes would be, a person does it, node by node.
func (c *Finder) together(s *share) *candidate {
	var set []edit.Change
	var parts []*candidate
	for at := s; at.part != nil; at = at.before {
		parts = append(parts, at.part)
	}
	slices.Reverse(parts)
	for _, f := range parts {
		for _, ch := range f.changes {
			if ch.Node == nil && ch.Relayout == nil && len(ch.Victims) == 0 {
				if slices.ContainsFunc(set, func(had edit.Change) bool { return had.Title == ch.Title }) {
					continue // the pods' own, which every part has
				}
			} else {
				ch.On = f.node
			}
			set = append(set, ch)
		}
	}
	relayouts := (&candidate{changes: set}).remade()
	if relayouts > 1 {
		for i := range set {
			set[i].Manual = set[i].Manual || set[i].Relayout != nil
		}
	}
	f := c.candidate(parts[0].node, set)
	f.pods = s.pods
	f.fix.Cost.Nodes = make([]string, len(parts))
	for i, p := range parts {
		f.fix.Cost.Nodes[i] = p.node.Name
	}
	kinds := f.fix.Kinds[:0]
	for _, k := range f.fix.Kinds {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	f.fix.Kinds = kinds
	if relayouts > 1 {
		f.fix.Title += fmt.Sprintf(" (%s, one after the other)", view.CountOf(len(parts), "node"))
	}
	return f
}

// remade is of how many nodes GPUs are re-made.
func (f *candidate) remade() int {
	n := 0
	for _, ch := range f.changes {
		if ch.Relayout != nil {
			n++
		}
	}
	return n
}
