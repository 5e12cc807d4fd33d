package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/placement"
)

// maxWays is how many ways are weighed of a node whose GPUs share too little CPU or memory.
const maxWays = 256

// roomy are the places of a node, as far as the guest's CPU, memory and room for pods go.
// Where all its GPUs together give more than that, the node is one place: what a guest on one
// GPU takes, one on the next lacks.
func (q *question) roomy(o *offer) []ways {
	var out []ways
	most := 0
	for _, w := range o.places {
		w.options = q.within(o, w.options)
		if len(w.options) > 0 {
			out = append(out, w)
			most += slices.MaxFunc(w.options, func(a, b placement.Option) int { return a.Fits - b.Fits }).Fits
		}
	}
	if len(out) < 2 || most <= q.room(o.node, nil) {
		return out
	}
	all := []placement.Option{{}}
	for _, w := range out {
		next := slices.Clone(all)
		for _, a := range all {
			for _, b := range w.options {
				next = append(next, placement.Option{Fits: a.Fits + b.Fits, Remade: a.Remade || b.Remade, Leave: joined(a.Leave, b.Leave)})
			}
		}
		all = q.fewest(q.capped(o, next))
	}
	return []ways{{wholeNode, undominated(all)}}
}

// within are options, each with as many as there is room for once those have left.
func (q *question) within(o *offer, options []placement.Option) []placement.Option {
	return slices.DeleteFunc(q.capped(o, slices.Clone(options)), func(p placement.Option) bool { return p.Fits <= 0 })
}

func (q *question) capped(o *offer, options []placement.Option) []placement.Option {
	for i := range options {
		var leave []*corev1.Pod
		for _, t := range options[i].Leave {
			leave = append(leave, q.tenants.Pods[t]...)
		}
		options[i].Fits = min(options[i].Fits, q.room(o.node, leave))
	}
	return options
}

// fewest are the ways that no other beats, those first for which few leave; the rest is not
// weighed where there are too many.
func (q *question) fewest(options []placement.Option) []placement.Option {
	slices.SortStableFunc(options, func(a, b placement.Option) int {
		if n := len(a.Leave) - len(b.Leave); n != 0 {
			return n
		}
		return b.Fits - a.Fits
	})
	if len(options) > 16*maxWays {
		options, q.rough = options[:16*maxWays], true
	}
	kept := append([]placement.Option{{}}, undominated(options)...)
	if len(kept) > maxWays {
		kept, q.rough = kept[:maxWays], true
	}
	return kept
}

// joined are who leave for two options, rising.
func joined(a, b []int) []int {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
