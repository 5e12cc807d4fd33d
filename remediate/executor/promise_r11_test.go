package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR11: a disruption budget that allows no eviction until the deadline stops the
// plan. What was begun is taken back, the pods are left alone, the message names the
// budget, and nothing is deleted.
func promiseR11(t *testing.T, l lanes) {
	three, all, none := intstr.FromInt32(3), intstr.FromString("100%"), intstr.FromInt32(0)
	least := policyv1.PodDisruptionBudgetSpec{MinAvailable: &three}
	stops := func(how string, budgets ...policyv1.PodDisruptionBudgetSpec) func(*testing.T, *cell) {
		return func(t *testing.T, c *cell) {
			node, d, f, holders := repartition(t, c)
			rem := c.recorded(t, d, f)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			c.on["evict "] = func() { // it was allowed when the plan was proved
				for i, b := range budgets {
					c.guard(t, fmt.Sprintf("keep-%d", i), "inference", b)
				}
			}
			c.deps.Deadlines.Evict = 2 * time.Second
			rem = c.carriedOut(t, rem.Name, c.goes(how, node))
			ended(t, rem, v1alpha1.Failed, c.ns+"/inference-", "not within 2s", "keep-0", "keep-"+fmt.Sprint(len(budgets)-1))
			c.asBefore(t, node)
			c.untouched(t, holders...)
			c.refusedEvictions(t)
			c.noLocks(t)
		}
	}
	l.play(t, []scene{
		{"a number of pods", stops(succeeds, least)},
		{"a share of them", stops(succeeds, policyv1.PodDisruptionBudgetSpec{MinAvailable: &all})},
		{"none may be missing", stops(succeeds, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none})},
		{"two of them", stops(succeeds, least, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none})},
		{"and the executor crashes", stops(crashes, least)},
		{"without a node's layout", evictionStopped},
	}, func() string { return "0 pods evicted, 0 deletes in the audit log" })
}

// evictionStopped: a plan that evicts a pod and does no more.
func evictionStopped(t *testing.T, c *cell) {
	node := c.gpuNode(t, 1)
	c.deployment(t, "inference", 7, on(node, spec("1g.5gb", "")))
	holders := c.running(t, "inference", 7)
	c.job(t, spec("1g.5gb", ""))
	d, f := c.finds(t, diagnosis.EvictPods)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	none := intstr.FromInt32(0)
	c.on["evict "] = func() {
		c.guard(t, "keep-0", "inference", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none})
	}
	c.deps.Deadlines.Evict = 2 * time.Second
	ended(t, c.carriedOut(t, rem.Name, c.one()), v1alpha1.Failed, "keep-0", "not within 2s")
	c.untouched(t, holders...)
	c.refusedEvictions(t)
	for _, p := range c.pods(t) {
		if p.Status.NominatedNodeName != "" {
			t.Errorf("%s is still nominated for %s", p.Name, p.Status.NominatedNodeName)
		}
	}
}

// guard has a budget guard the pods of an app, and waits until that is in force.
func (c *cell) guard(t *testing.T, name, app string, b policyv1.PodDisruptionBudgetSpec) {
	t.Helper()
	b.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	budgets := c.Client().PolicyV1().PodDisruptionBudgets(c.ns)
	if _, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: b}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 10*time.Second, "the budget is counted", func() (bool, string) {
		got, err := budgets.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && got.Status.ObservedGeneration == got.Generation && got.Status.CurrentHealthy > 0, ""
	})
}

// refusedEvictions wants evictions to have been asked for, none to have been granted,
// and nothing to have been deleted.
func (c *cell) refusedEvictions(t *testing.T) {
	t.Helper()
	asked := 0
	for _, w := range c.writes(t) {
		switch {
		case w.resource == "pods/eviction" && w.code >= 400:
			asked++
		case w.resource == "nodes", w.resource == "pods/status": // the cordon and its way back, the nomination
		default:
			t.Errorf("written: %+v", w)
		}
		if strings.HasPrefix(w.verb, "delete") {
			t.Errorf("deleted: %+v", w)
		}
	}
	if asked == 0 {
		t.Error("no eviction was asked for")
	}
}
