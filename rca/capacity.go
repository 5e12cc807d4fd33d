package rca

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/placement"
)

// CapacityKind marks a list of capacity answers when it is printed.
const CapacityKind = "CapacityList"

// CapacityList is what `unpend capacity -o json` prints.
type CapacityList struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Items      []CapacityItem `json:"items"`
}

// CapacityAsk asks whether so many more of a GPU resource fit, one a pod.
type CapacityAsk struct {
	Resource string // nvidia.com/gpu or nvidia.com/mig-…
	Count    int
}

// CapacityItem says how many more of a resource fit, over all nodes that are
// ready and not cordoned: Now ≤ Repartition ≤ Hardware.
type CapacityItem struct {
	Resource string `json:"resource"`
	Asked    int    `json:"asked"`
	// Now fit as things are: instances, or whole GPUs, that nobody holds.
	Now int `json:"now"`
	// Repartition fit with nobody moving, when MIG manager re-makes the GPUs that
	// nobody holds.
	Repartition int `json:"repartition"`
	// Hardware fit with nobody moving, if single idle instances could be re-made.
	Hardware int           `json:"hardware"`
	Evict    CapacityEvict `json:"evict"`
	Ignored  []string      `json:"ignored"` // what was not counted, and why
}

// CapacityEvict is the cheapest plan for what was asked, by MIG manager.
type CapacityEvict struct {
	Fits      int           `json:"fits"`      // less than asked: the most there is
	Evictions []PodName     `json:"evictions"` // by name
	Nodes     []string      `json:"nodes"`     // that the plan changes, by name
	Proof     CapacityProof `json:"proof"`
}

// CapacityProof lets a reader check that no plan costs less. Costs compare field
// by field.
type CapacityProof struct {
	Cost VictimCost `json:"cost"`
	// AtLeast is a bound: the optimum if disruption budgets bound nothing and a
	// gang could leave in parts.
	AtLeast VictimCost `json:"atLeast"`
	// RunnerUp is what a plan costs at least that evicts nobody from one of the
	// places of this one; absent when there is none, or it was not looked for.
	RunnerUp *VictimCost `json:"runnerUp,omitempty"`
	Exact    bool        `json:"exact"` // all other plans were ruled out
}

// VictimCost is what evictions cost.
type VictimCost struct {
	Highest     int64 `json:"highest"` // priority among those who leave
	Sum         int64 `json:"sum"`     // of their priorities, one below zero counting as zero
	Number      int   `json:"number"`  // of pods, a gang counting once
	LostSeconds int64 `json:"lostSeconds"`
}

// Capacity answers each ask by itself: they do not compete. It changes nothing.
// The error is that of a cancelled context, or names a resource that is not one
// of NVIDIA's.
func Capacity(ctx context.Context, st *cluster.State, asks []CapacityAsk) ([]CapacityItem, error) {
	out := make([]CapacityItem, 0, len(asks))
	for _, a := range asks {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("count %s: %w", a.Resource, err)
		}
		q, err := newQuestion(st, a)
		if err != nil {
			return nil, err
		}
		out = append(out, q.answer())
	}
	return out, nil
}

// CheckCapacityResource refuses, in a sentence, what Capacity cannot count.
func CheckCapacityResource(name string) error {
	if profile, isMIG := strings.CutPrefix(name, migPrefix); name != wholeGPU && (!isMIG || profile == "") {
		return fmt.Errorf("resource %q is neither %s nor %s followed by a profile, such as %s3g.20gb", name, wholeGPU, migPrefix, migPrefix)
	}
	return nil
}

// question is one ask and what the nodes offer for it.
type question struct {
	world   *world
	ask     ask
	notes   notes
	tenants *tenants
	index   *placement.Index // of GPUs whose positions are known
	gpus    int              // in it
	places  []place
	options [][]placement.Option
	item    CapacityItem
}

// place is where an option of the plan is.
type place struct{ node string }

func newQuestion(st *cluster.State, a CapacityAsk) (*question, error) {
	if err := CheckCapacityResource(a.Resource); err != nil {
		return nil, err
	}
	profile, isMIG := strings.CutPrefix(a.Resource, migPrefix)
	if !isMIG {
		profile = ""
	}
	// Every question looks afresh: it marks in its view what it does not trust.
	w := view(st)
	return &question{world: w, ask: ask{corev1.ResourceName(a.Resource), profile, int64(a.Count)}, tenants: newTenants(newLedger(w).forNextPod()), index: placement.NewIndex(),
		item: CapacityItem{Resource: a.Resource, Asked: a.Count}}, nil
}

func (q *question) answer() CapacityItem {
	for _, v := range q.world.sortedNodes() {
		if why := outOfUse(v.Node); why != "" {
			if v.hasGPUs() {
				q.notes.add("node", why, v.Name)
			}
			continue
		}
		if q.ask.profile == "" {
			q.wholeGPUs(v)
		} else {
			q.instances(v)
		}
	}
	totals := q.index.Totals(q.index.Ask(q.ask.profile), nil)
	q.item.Now += totals.Now
	q.item.Repartition += totals.Remade
	q.item.Hardware += totals.Room
	q.evict()
	q.item.Ignored = q.ignored()
	return q.item
}

// outOfUse says why no new pod is to be expected on a node; empty for one that is
// ready and not cordoned.
func outOfUse(n *corev1.Node) string {
	if n.Spec.Unschedulable {
		return "cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "not ready"
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return "not ready"
		}
	}
	return ""
}

// evict plans for what was asked.
func (q *question) evict() {
	planner := placement.NewPlanner(placement.Problem{Tenants: q.tenants.list, Budgets: q.world.pdbs.allowed(), Places: q.options})
	plan := planner.Plan(q.item.Asked)
	e := CapacityEvict{Fits: plan.Fits, Evictions: []PodName{}, Nodes: []string{}}
	for _, t := range plan.Leave {
		for _, p := range q.tenants.pods[t] {
			e.Evictions = append(e.Evictions, PodName{p.Namespace, p.Name})
			e.Nodes = append(e.Nodes, p.Spec.NodeName)
		}
	}
	for _, m := range plan.Moves {
		if o := q.options[m.Place][m.Option]; o.Remade || len(o.Leave) > 0 {
			e.Nodes = append(e.Nodes, q.places[m.Place].node)
		}
	}
	slices.SortFunc(e.Evictions, func(a, b PodName) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	slices.Sort(e.Nodes)
	e.Nodes = slices.Compact(e.Nodes)
	e.Proof = CapacityProof{Cost: victimCostOf(plan.Cost), AtLeast: victimCostOf(plan.Proof.Bound), Exact: plan.Proof.Exact}
	if r := plan.Proof.RunnerUp; r != nil {
		cost := victimCostOf(*r)
		e.Proof.RunnerUp = &cost
	}
	q.item.Evict = e
}

func victimCostOf(c placement.Cost) VictimCost {
	return VictimCost{Highest: c.Highest, Sum: c.Sum, Number: c.Number, LostSeconds: c.Lost}
}
