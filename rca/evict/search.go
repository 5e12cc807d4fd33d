package evict

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// search finds the cheapest set of pods whose leaving covers the deficits: the
// whole tree of choices with bounds, so the result is exact unless visits runs
// out (then it is the best found).
type search struct {
	a          *Asker
	candidates [][]*corev1.Pod // who leave together, cheapest first
	frees      []map[corev1.ResourceName]int64
	bounds     []bounds // by the number of candidates decided on
	guards     [][]int  // by candidate: the budgets that guard its pods, once for each
	allowed    []int    // by budget: how many more may go
	best       []*corev1.Pod
	bestCost   Cost
	found      bool
	visits     int
}

// bounds say, of the candidates that are left, what the best n of them could
// give and the cheapest n of them would cost: sums for n = 0, 1, 2, …
type bounds struct {
	frees map[corev1.ResourceName][]int64
	prios []int64
	lost  []time.Duration
}

// maxVisits bounds one search: nodes of 110 pods of one priority that differ in
// every other respect stay below it.
const maxVisits = 50_000

// Cheapest finds the cheapest evictions on a node that cover lack.
func (a *Asker) Cheapest(n *view.Node, lack view.Deficits) ([]*corev1.Pod, bool) {
	return a.CheapestOf(n, lack, func(*corev1.Pod) bool { return true })
}

// CheapestOf is cheapest among those pods that may go by what is given, too.
func (a *Asker) CheapestOf(n *view.Node, lack view.Deficits, may func(*corev1.Pod) bool) ([]*corev1.Pod, bool) {
	s := a.search(n, lack, may)
	if s.coverable(lack) {
		s.descend(0, lack, nil, NoVictims)
	}
	return s.best, s.found
}

func (a *Asker) search(n *view.Node, lack view.Deficits, may func(*corev1.Pod) bool) *search {
	s := &search{a: a, visits: maxVisits, allowed: a.Cluster.Budgets.Allowed()}
	met := map[*corev1.Pod]bool{}
	for _, p := range n.Pods {
		gives := func(name corev1.ResourceName) bool { return n.Contribution(p, name) > 0 }
		if met[p] || !slices.ContainsFunc(lack.Names(), gives) {
			continue
		}
		pods := a.Cluster.Together(p)
		stays := func(p *corev1.Pod) bool { return a.Cluster.Budgets.Refuse(p) || !a.MayLeave(p) || !may(p) }
		for _, p := range pods {
			met[p] = true
		}
		if !slices.ContainsFunc(pods, stays) {
			s.candidates = append(s.candidates, pods)
		}
	}
	now := a.Cluster.State.Now
	slices.SortStableFunc(s.candidates, func(a, b []*corev1.Pod) int {
		return cmp.Or(NoVictims.with(a, now).Compare(NoVictims.with(b, now)), strings.Compare(a[0].Namespace+"/"+a[0].Name, b[0].Namespace+"/"+b[0].Name))
	})
	for _, pods := range s.candidates {
		frees := map[corev1.ResourceName]int64{}
		var guards []int
		for _, p := range pods {
			guards = append(guards, a.Cluster.Budgets.Guarding(p)...)
			for name := range lack {
				if p.Spec.NodeName == n.Name {
					frees[name] += n.Contribution(p, name)
				}
			}
		}
		s.frees = append(s.frees, frees)
		s.guards = append(s.guards, guards)
	}
	s.bound(lack)
	return s
}

// bound fills in the bounds.
func (s *search) bound(lack view.Deficits) {
	s.bounds = make([]bounds, len(s.candidates)+1)
	lost := make([]time.Duration, len(s.candidates))
	prios := make([]int64, len(s.candidates))
	for i, p := range s.candidates {
		lost[i] = NoVictims.with(p, s.a.Cluster.State.Now).Lost
		prios[i] = view.PriorityOf(p)
	}
	for i := range s.bounds {
		b := bounds{frees: map[corev1.ResourceName][]int64{}, prios: sums(prios[i:], cmp.Compare), lost: sums(lost[i:], cmp.Compare)}
		for name := range lack {
			var gives []int64
			for _, f := range s.frees[i:] {
				gives = append(gives, f[name])
			}
			b.frees[name] = sums(gives, func(a, b int64) int { return cmp.Compare(b, a) })
		}
		s.bounds[i] = b
	}
}

// sums are those of the first 0, 1, 2, … of the values in an order.
func sums[T ~int64](values []T, order func(a, b T) int) []T {
	out := make([]T, 1, len(values)+1)
	for _, v := range slices.SortedFunc(slices.Values(values), order) {
		out = append(out, out[len(out)-1]+v)
	}
	return out
}

func (s *search) descend(i int, lack view.Deficits, chosen []*corev1.Pod, cost Cost) {
	if s.visits--; s.visits < 0 || s.found && cost.Compare(s.bestCost) >= 0 {
		return
	}
	if covered(lack) {
		s.best, s.bestCost, s.found = slices.Clone(chosen), cost, true
		return
	}
	need := s.needed(i, lack)
	if need < 0 || s.found && s.atLeast(i, need, cost).Compare(s.bestCost) >= 0 {
		return
	}
	s.take(i, -1)
	if !slices.ContainsFunc(s.guards[i], func(g int) bool { return s.allowed[g] < 0 }) {
		s.descend(i+1, minus(lack, s.frees[i]), append(chosen, s.candidates[i]...), cost.with(s.candidates[i], s.a.Cluster.State.Now))
	}
	s.take(i, +1)
	s.descend(i+1, lack, chosen, cost)
}

// coverable says whether the candidates could cover each of the deficits, were it
// alone, with what their budgets allow. Without it, a node whose pods are guarded
// well is searched to the end in vain.
func (s *search) coverable(lack view.Deficits) bool {
	for name, l := range lack {
		order := make([]int, len(s.candidates))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.frees[b][name], s.frees[a][name]) })
		left := slices.Clone(s.allowed)
		for _, i := range order {
			if len(s.guards[i]) == 1 { // of several pods or budgets none is sure to bind
				if left[s.guards[i][0]]--; left[s.guards[i][0]] < 0 {
					continue
				}
			}
			l -= s.frees[i][name]
		}
		if l > 0 {
			return false
		}
	}
	return true
}

// take counts a candidate on its budgets.
func (s *search) take(i, change int) {
	for _, g := range s.guards[i] {
		s.allowed[g] += change
	}
}

// needed is the least number of further pods that can cover the deficits; -1
// when all that are left cannot.
func (s *search) needed(i int, lack view.Deficits) int {
	need := 0
	for name, l := range lack {
		if l <= 0 {
			continue
		}
		n, _ := slices.BinarySearch(s.bounds[i].frees[name], l)
		if n == len(s.bounds[i].frees[name]) {
			return -1
		}
		need = max(need, n)
	}
	return need
}

// atLeast is a cost no completion can undercut: candidates are sorted by
// priority first, so the next one has the lowest that is left.
func (s *search) atLeast(i, need int, cost Cost) Cost {
	cost.Highest = max(cost.Highest, view.PriorityOf(s.candidates[i]))
	cost.Sum += s.bounds[i].prios[need]
	cost.Number += need
	cost.Lost += s.bounds[i].lost[need]
	return cost
}

func covered(lack view.Deficits) bool {
	for _, l := range lack {
		if l > 0 {
			return false
		}
	}
	return true
}

func minus(lack view.Deficits, frees map[corev1.ResourceName]int64) view.Deficits {
	out := view.Deficits{}
	for name, l := range lack {
		if rest := l - frees[name]; rest > 0 {
			out[name] = rest
		}
	}
	return out
}
