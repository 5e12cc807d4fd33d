package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// Ask asks whether so many more of a GPU resource fit, one a pod.
type Ask struct {
	Resource string // nvidia.com/gpu or nvidia.com/mig-…
	Count    int
}

// ErrUnknown says that what was not read might change every answer.
var ErrUnknown = errors.New("capacity is not known")

// Capacity answers what was asked, on behalf of a guest; several asks together, so that what
// one takes the next does not get. It changes nothing. The error is ErrUnknown, that of a
// cancelled context or of the scheduler's code, or names a resource that is not one of
// NVIDIA's.
func Capacity(ctx context.Context, st *cluster.State, asks []Ask, g Guest) (diagnosis.CapacityList, error) {
	out := diagnosis.CapacityList{APIVersion: diagnosis.APIVersion, Kind: diagnosis.CapacityKind, Items: []diagnosis.CapacityItem{}}
	for _, kind := range []string{"Node", "Pod"} {
		if why := st.Unread[kind]; why != "" {
			return out, fmt.Errorf("%w: %ss are unread (%s)", ErrUnknown, strings.ToLower(kind), why)
		}
	}
	host, err := g.look(ctx, st)
	if err != nil {
		return out, err
	}
	t := &together{st: st, host: host, asks: asks}
	out.Items, out.Together, err = t.answer(ctx)
	return out, err
}

// CheckCapacityResource refuses, in a sentence, what Capacity cannot count.
func CheckCapacityResource(name string) error {
	if profile, isMIG := strings.CutPrefix(name, view.MIGPrefix); name != view.WholeGPU && (!isMIG || profile == "") {
		return fmt.Errorf("resource %q is neither %s nor %s followed by a profile, such as %s3g.20gb", name, view.WholeGPU, view.MIGPrefix, view.MIGPrefix)
	}
	return nil
}

// question is one ask and what the nodes offer for it.
type question struct {
	world   *view.Cluster
	ask     view.Ask
	host    *host
	notes   notes
	tenants *evict.Tenants
	places  []place
	options [][]placement.Option
	item    diagnosis.CapacityItem
	// taken is what those who were asked about before have taken, and then what this ask has.
	taken *taken
	rough bool // not every way was weighed
}

// place is where an option of the plan is: a node, or one GPU of it.
type place struct {
	node *view.Node
	gpu  int // of Node.GPUs; negative for the node as a whole
}

func newQuestion(st *cluster.State, a Ask, h *host, before *taken) (*question, error) {
	if err := CheckCapacityResource(a.Resource); err != nil {
		return nil, err
	}
	profile, isMIG := strings.CutPrefix(a.Resource, view.MIGPrefix)
	if !isMIG {
		profile = ""
	}
	// Every question looks afresh: it marks in its view what it does not trust.
	w := view.New(st)
	asker := evict.NewLedger(w).ForNextPod()
	if h.pod != nil {
		asker = evict.NewLedger(w).ForPod(h.pod)
	}
	return &question{world: w, host: h, taken: before.clone(), ask: view.Ask{Resource: corev1.ResourceName(a.Resource), Profile: profile, Count: int64(a.Count)}, tenants: evict.NewTenants(asker),
		item: diagnosis.CapacityItem{Resource: a.Resource, Asked: a.Count}}, nil
}

func (q *question) answer() diagnosis.CapacityItem {
	for _, v := range q.world.SortedNodes() {
		if why := outOfUse(v); why != "" {
			if v.HasGPUs() {
				q.notes.add("node", why, v.Name)
			}
			continue
		}
		if why := q.host.refuses(v); why != "" {
			if v.HasGPUs() {
				q.notes.add("node", why, v.Name)
			}
			continue
		}
		o := &offer{node: v}
		if q.ask.Profile == "" {
			q.wholeGPUs(o)
		} else {
			q.instances(o)
		}
		q.count(o)
	}
	q.evict()
	q.item.Ignored, q.item.For = q.ignored(), q.host.askedFor()
	return q.item
}

// outOfUse says why no new pod is to be expected on a node; empty for one that is
// ready, not cordoned, and nobody's.
func outOfUse(v *view.Node) string {
	if why := v.Taken(); why != "" {
		return shortly(v, why)
	}
	n := v.Node
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

// shortly is why a node is taken, without what is its own: nodes are counted by it.
func shortly(v *view.Node, why string) string {
	mark := v.Operation()
	switch {
	case mark.Parked != "":
		return "parked by unpend"
	case mark.Quarantined != "":
		return "quarantined by unpend"
	}
	return why
}

// evict plans for what was asked.
func (q *question) evict() {
	planner := placement.NewPlanner(placement.Problem{Tenants: q.tenants.List, Budgets: q.taken.left(q.world.Budgets.Allowed()), Places: q.options})
	plan := planner.Plan(q.item.Asked)
	e := diagnosis.CapacityEvict{Fits: plan.Fits, Evictions: []diagnosis.PodName{}, Nodes: []string{}}
	for _, t := range plan.Leave {
		for _, p := range q.tenants.Pods[t] {
			e.Evictions = append(e.Evictions, diagnosis.PodName{Namespace: p.Namespace, Name: p.Name})
			e.Nodes = append(e.Nodes, p.Spec.NodeName)
		}
	}
	for _, m := range plan.Moves {
		if o := q.options[m.Place][m.Option]; o.Remade || len(o.Leave) > 0 {
			e.Nodes = append(e.Nodes, q.places[m.Place].node.Name)
		}
	}
	slices.SortFunc(e.Evictions, byName)
	slices.Sort(e.Nodes)
	e.Nodes = slices.Compact(e.Nodes)
	e.Proof = diagnosis.CapacityProof{Cost: costOf(plan.Cost), AtLeast: costOf(plan.Proof.Bound), Exact: plan.Proof.Exact && !q.rough}
	if r := plan.Proof.RunnerUp; r != nil {
		cost := costOf(*r)
		e.Proof.RunnerUp = &cost
	}
	q.item.Evict = e
	q.take(plan)
}

func costOf(c placement.Cost) diagnosis.VictimCost {
	return diagnosis.VictimCost{Highest: c.Highest, Sum: c.Sum, Number: c.Number, LostSeconds: c.Lost}
}
