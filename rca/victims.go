package rca

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// systemCritical is the lowest priority of system-cluster-critical and
// system-node-critical (pkg/apis/scheduling/types.go, SystemCriticalPriority).
const systemCritical = 2 * 1000000000

// mayLeave says whether the pod can be a victim for the waiting one: never
// system pods, pods of nodes and DaemonSets, or pods of a higher priority.
func (c *Case) mayLeave(p *corev1.Pod) bool {
	prio := corev1helpers.PodPriority(p)
	if prio >= systemCritical || prio > corev1helpers.PodPriority(c.Pod) || p.DeletionTimestamp != nil {
		return false
	}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	owner := metav1.GetControllerOf(p)
	return owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node"
}

// comesBack says whether a controller re-creates the pod after an eviction. A
// pod of a Job that may not fail any more is not counted on.
func comesBack(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind != "Node"
}

// victimCost is compared lexicographically: highest priority, sum of
// priorities, number, work lost.
type victimCost struct {
	highest, sum int64
	number       int
	lost         time.Duration
}

func (a victimCost) compare(b victimCost) int {
	return cmp.Or(cmp.Compare(a.highest, b.highest), cmp.Compare(a.sum, b.sum), cmp.Compare(a.number, b.number), cmp.Compare(a.lost, b.lost))
}

// noVictims costs less than any set.
var noVictims = victimCost{highest: -1 << 40}

func (a victimCost) with(p *corev1.Pod, now time.Time) victimCost {
	prio := int64(corev1helpers.PodPriority(p))
	a.highest = max(a.highest, prio)
	a.sum += prio
	a.number++
	if p.Status.StartTime != nil {
		// Whole, not in seconds: rounding would let the order change with the time.
		a.lost += max(0, now.Sub(p.Status.StartTime.Time))
	}
	return a
}

func (c *Case) costOf(victims []*corev1.Pod) victimCost {
	cost := noVictims
	for _, p := range victims {
		cost = cost.with(p, c.world.state.Now)
	}
	return cost
}

// budgets answers whether PodDisruptionBudgets allow a set of evictions.
type budgets struct{ list []budget }

type budget struct {
	pdb      *policyv1.PodDisruptionBudget
	selector labels.Selector
}

func newBudgets(pdbs []*policyv1.PodDisruptionBudget) *budgets {
	b := &budgets{}
	for _, p := range pdbs {
		sel, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
		if err != nil {
			sel = labels.Everything() // unreadable: assume it guards every pod of its namespace
		}
		b.list = append(b.list, budget{p, sel})
	}
	return b
}

// refuses names the budget that a set of evictions would break; empty when none.
func (b *budgets) refuses(victims []*corev1.Pod) string {
	for _, g := range b.list {
		n := 0
		for _, v := range victims {
			if v.Namespace == g.pdb.Namespace && g.selector.Matches(labels.Set(v.Labels)) {
				n++
			}
		}
		if n > 0 && n > int(g.pdb.Status.DisruptionsAllowed) {
			return g.pdb.Namespace + "/" + g.pdb.Name
		}
	}
	return ""
}

// deficits are the resources a node lacks for the pod, in milli-units.
type deficits map[corev1.ResourceName]int64

// deficitsOf says what is missing on a node once some of its pods have left;
// ok is false when even an empty node lacks it.
func (c *Case) deficitsOf(n *nodeView, asked corev1.ResourceList) (deficits, bool) {
	out := deficits{}
	for name, q := range asked {
		alloc := n.Status.Allocatable[name]
		if alloc.Cmp(q) < 0 {
			return nil, false
		}
		free := n.free(name)
		if lack := q.MilliValue() - free.MilliValue(); lack > 0 {
			out[name] = lack
		}
	}
	if pods := n.free(corev1.ResourcePods); pods.Value() < 1 {
		out[corev1.ResourcePods] = 1000
	}
	return out, true
}

func (n *nodeView) contribution(p *corev1.Pod, name corev1.ResourceName) int64 {
	if name == corev1.ResourcePods {
		return 1000
	}
	q := n.requests[p][name]
	return q.MilliValue()
}

// search finds the cheapest set of pods whose leaving covers the deficits: the
// whole tree of choices with a bound, so the result is exact unless visits runs
// out (then it is the best found).
type search struct {
	c          *Case
	candidates []*corev1.Pod
	frees      []map[corev1.ResourceName]int64
	best       []*corev1.Pod
	bestCost   victimCost
	found      bool
	visits     int
}

// maxVisits bounds one search: 110 pods of a node with equal costs stay far
// below it.
const maxVisits = 50_000

// cheapest finds the cheapest evictions on a node that cover lack.
func (c *Case) cheapest(n *nodeView, lack deficits) ([]*corev1.Pod, bool) {
	s := &search{c: c, visits: maxVisits}
	for _, p := range n.pods {
		if !c.mayLeave(p) {
			continue
		}
		frees := map[corev1.ResourceName]int64{}
		for name := range lack {
			if v := n.contribution(p, name); v > 0 {
				frees[name] = v
			}
		}
		if len(frees) > 0 {
			s.candidates = append(s.candidates, p)
		}
	}
	slices.SortStableFunc(s.candidates, func(a, b *corev1.Pod) int {
		return cmp.Or(s.c.costOf([]*corev1.Pod{a}).compare(s.c.costOf([]*corev1.Pod{b})),
			strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	for _, p := range s.candidates {
		frees := map[corev1.ResourceName]int64{}
		for name := range lack {
			frees[name] = n.contribution(p, name)
		}
		s.frees = append(s.frees, frees)
	}
	s.descend(0, lack, nil, noVictims)
	return s.best, s.found
}

func (s *search) descend(i int, lack deficits, chosen []*corev1.Pod, cost victimCost) {
	if s.visits--; s.visits < 0 || s.found && cost.compare(s.bestCost) >= 0 {
		return
	}
	if covered(lack) {
		if s.c.world.pdbs.refuses(chosen) == "" {
			s.best, s.bestCost, s.found = slices.Clone(chosen), cost, true
		}
		return
	}
	need := s.needed(i, lack)
	if need < 0 || s.found && s.bound(i, need, cost).compare(s.bestCost) >= 0 {
		return
	}
	s.descend(i+1, minus(lack, s.frees[i]), append(chosen, s.candidates[i]), cost.with(s.candidates[i], s.c.world.state.Now))
	s.descend(i+1, lack, chosen, cost)
}

// needed is the least number of further pods that can cover the deficits; -1
// when all that are left cannot.
func (s *search) needed(i int, lack deficits) int {
	need := 0
	for name, l := range lack {
		if l <= 0 {
			continue
		}
		var most, sum int64
		for _, f := range s.frees[i:] {
			most = max(most, f[name])
			sum += f[name]
		}
		if sum < l {
			return -1
		}
		need = max(need, int((l+most-1)/most))
	}
	return need
}

// bound is a cost no completion can undercut: candidates are sorted by cost, so
// the next one is the cheapest left.
func (s *search) bound(i, need int, cost victimCost) victimCost {
	prio := int64(corev1helpers.PodPriority(s.candidates[i]))
	cost.highest = max(cost.highest, prio)
	cost.sum += int64(need) * prio
	cost.number += need
	return cost
}

func covered(lack deficits) bool {
	for _, l := range lack {
		if l > 0 {
			return false
		}
	}
	return true
}

func minus(lack deficits, frees map[corev1.ResourceName]int64) deficits {
	out := deficits{}
	for name, l := range lack {
		if rest := l - frees[name]; rest > 0 {
			out[name] = rest
		}
	}
	return out
}
