package evict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// crowded is a pod that waits beside the victims on one node.
func crowded(prio int32, pdbs []*policyv1.PodDisruptionBudget, pods ...*corev1.Pod) (*Asker, *view.Node) {
	nodes := []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "gpu-2"}}}
	w := view.New(&cluster.State{Now: rcatest.Noon, Nodes: nodes, Pods: pods, PDBs: pdbs})
	return NewLedger(w).ForPod(&corev1.Pod{Spec: corev1.PodSpec{Priority: &prio}}), w.Nodes["gpu-1"]
}

func names(pods []*corev1.Pod) []string {
	out := []string{}
	for _, p := range pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func TestWhoMayLeave(t *testing.T) {
	c, _ := crowded(10, nil)
	edit := func(change func(*corev1.Pod)) *corev1.Pod {
		p := rcatest.Victim("p", 10, 1, 0, "x")
		change(p)
		return p
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"equal priority":  {edit(func(*corev1.Pod) {}), true},
		"no controller":   {edit(func(p *corev1.Pod) { p.OwnerReferences = nil }), true},
		"higher priority": {rcatest.Victim("p", 11, 1, 0, "x"), false},
		"system critical": {rcatest.Victim("p", view.SystemCritical, 1, 0, "x"), false},
		"of a DaemonSet":  {edit(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }), false},
		"of a node":       {edit(func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Node" }), false},
		"mirror pod":      {edit(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }), false},
		"leaving already": {edit(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} }), false},
	}
	for name, k := range cases {
		if got := c.MayLeave(k.pod); got != k.want {
			t.Errorf("%s: may leave %v, want %v", name, got, k.want)
		}
	}
	// A critical pod that waits does not make critical pods its victims.
	if c, _ := crowded(view.SystemCritical+1, nil); c.MayLeave(rcatest.Victim("p", view.SystemCritical, 1, 0, "x")) {
		t.Error("a system-critical pod may leave")
	}
}

// The cost is compared highest priority first, then their sum, the number, and
// the work lost.
func TestCheapestVictims(t *testing.T) {
	cases := map[string]struct {
		lack int64
		pdbs []*policyv1.PodDisruptionBudget
		pods []*corev1.Pod
		want []string
	}{
		"lowest priority, though two leave": {2, nil, []*corev1.Pod{rcatest.Victim("high", 5, 2, 0, "x"), rcatest.Victim("low-1", 1, 1, 0, "x"), rcatest.Victim("low-2", 1, 1, 0, "x")}, []string{"low-1", "low-2"}},
		"one instead of two":                {2, nil, []*corev1.Pod{rcatest.Victim("both", 0, 2, time.Hour, "x"), rcatest.Victim("one", 0, 1, 0, "x"), rcatest.Victim("two", 0, 1, 0, "x")}, []string{"both"}},
		"the younger":                       {1, nil, []*corev1.Pod{rcatest.Victim("old", 0, 1, time.Hour, "x"), rcatest.Victim("young", 0, 1, time.Minute, "x")}, []string{"young"}},
		"as young but for seconds":          {1, nil, []*corev1.Pod{rcatest.Victim("a", 0, 1, time.Hour, "x"), rcatest.Victim("b", 0, 1, time.Hour-time.Second, "x")}, []string{"a"}},
		"a budget in the way":               {1, []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("guarded", 0)}, []*corev1.Pod{rcatest.Victim("cheap", 0, 1, 0, "guarded"), rcatest.Victim("dear", 3, 1, 0, "x")}, []string{"dear"}},
		"a budget for one":                  {2, []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("guarded", 1)}, []*corev1.Pod{rcatest.Victim("g-1", 0, 1, 0, "guarded"), rcatest.Victim("g-2", 0, 1, 0, "guarded"), rcatest.Victim("dear", 3, 1, 0, "x")}, []string{"dear", "g-1"}},
		"all guarded":                       {1, []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("guarded", 0)}, []*corev1.Pod{rcatest.Victim("g", 0, 1, 0, "guarded")}, nil},
		"only higher ones":                  {1, nil, []*corev1.Pod{rcatest.Victim("above", 100, 1, 0, "x")}, nil},
		"not enough together":               {3, nil, []*corev1.Pod{rcatest.Victim("one", 0, 1, 0, "x"), rcatest.Victim("two", 0, 1, 0, "x")}, nil},
	}
	for name, k := range cases {
		c, n := crowded(10, k.pdbs, k.pods...)
		got, ok := c.Cheapest(n, view.Deficits{view.WholeGPU: k.lack * 1000})
		if ok != (k.want != nil) || ok && !slices.Equal(names(got), k.want) {
			t.Errorf("%s: %v (%v), want %v", name, names(got), ok, k.want)
		}
	}
}

// On random nodes the search finds what trying every set finds.
func TestCheapestIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		var pods []*corev1.Pod
		for i := range 1 + rng.IntN(9) {
			pods = append(pods, rcatest.Victim(fmt.Sprint("p", i), int32(rng.IntN(3)), int64(rng.IntN(3)), time.Duration(rng.IntN(4))*time.Minute, []string{"x", "y"}[rng.IntN(2)]))
		}
		pdbs := []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("x", int32(rng.IntN(4)))}
		c, n := crowded(int32(1+rng.IntN(2)), pdbs, pods...)
		lack := view.Deficits{view.WholeGPU: int64(1+rng.IntN(5)) * 1000}
		if rng.IntN(2) == 0 {
			lack[corev1.ResourceCPU] = int64(rng.IntN(4)) * 1000
		}
		var best Cost
		found := false
		for set := range 1 << len(pods) {
			chosen, rest := []*corev1.Pod(nil), lack
			may := true
			for i, p := range pods {
				if set>>i&1 == 1 {
					chosen = append(chosen, p)
					may = may && c.MayLeave(p)
					rest = minus(rest, map[corev1.ResourceName]int64{view.WholeGPU: n.Contribution(p, view.WholeGPU), corev1.ResourceCPU: n.Contribution(p, corev1.ResourceCPU)})
				}
			}
			if cost := c.CostOf(chosen); may && covered(rest) && cost.Beyond == 0 && (!found || cost.Compare(best) < 0) {
				best, found = cost, true
			}
		}
		got, ok := c.Cheapest(n, lack)
		if ok != found || ok && c.CostOf(got).Compare(best) != 0 {
			t.Fatalf("round %d: %v (%v) costs %+v, the best set %+v (%v)", round, names(got), ok, c.CostOf(got), best, found)
		}
	}
}

// A node full of pods that differ in every respect is searched to the end.
func TestSearchesEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, lacking := range []int64{1, 2, 5, 10, 20, 50} {
		var pods []*corev1.Pod
		for i := range 110 {
			p := rcatest.Victim(fmt.Sprint("p", i), 0, 1, time.Duration(rng.IntN(1e6))*time.Second, fmt.Sprint("app-", i%5))
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(rng.IntN(8000)), resource.DecimalSI)
			pods = append(pods, p)
		}
		var pdbs []*policyv1.PodDisruptionBudget
		for i := range 5 {
			pdbs = append(pdbs, rcatest.BudgetFor(fmt.Sprint("app-", i), int32(i*3)))
		}
		c, n := crowded(10, pdbs, pods...)
		lack := view.Deficits{view.WholeGPU: lacking * 1000, corev1.ResourceCPU: lacking * 4100}
		s := c.search(n, lack, func(*corev1.Pod) bool { return true })
		if s.coverable(lack) {
			s.descend(0, lack, nil, NoVictims)
		}
		if s.visits <= 0 {
			t.Errorf("%d GPUs: the search ran out of visits", lacking)
		}
		t.Logf("%d GPUs: %d visits, %d victims", lacking, maxVisits-s.visits, len(s.best))
	}
}

// A gang leaves whole, those on other nodes too, and counts once.
func TestGangsLeaveWhole(t *testing.T) {
	member := func(name, node string) *corev1.Pod {
		p := rcatest.Victim(name, 0, 1, 0, "x")
		p.Spec.NodeName, p.Labels["scheduling.x-k8s.io/pod-group"] = node, "train"
		return p
	}
	here, there := member("g-1", "gpu-1"), member("g-2", "gpu-2")
	dear := rcatest.Victim("dear", 3, 1, 0, "y")
	c, n := crowded(10, nil, here, there, dear)
	if got, ok := c.Cheapest(n, view.Deficits{view.WholeGPU: 1000}); !ok || !slices.Equal(names(got), []string{"g-1", "g-2"}) || c.CostOf(got).Number != 1 {
		t.Errorf("%v (%v), want the gang, counted once", names(got), ok)
	}
	c, n = crowded(10, []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("x", 1)}, here, there, dear)
	if got, ok := c.Cheapest(n, view.Deficits{view.WholeGPU: 1000}); !ok || !slices.Equal(names(got), []string{"dear"}) {
		t.Errorf("%v (%v): a budget lets one of the gang go, so it stays", names(got), ok)
	}
}
