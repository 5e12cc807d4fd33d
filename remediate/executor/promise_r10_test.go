package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The ways in which a carrying out goes.
const (
	succeeds = "succeeds"
	fails    = "fails"   // MIG manager does
	crashes  = "crashes" // before and after every write, and then succeeds
)

// promiseR10: a node that a person has cordoned, before the plan or during any step of
// it, is cordoned afterwards, however it ends; and it carries no mark of ours.
func promiseR10(t *testing.T, l lanes) {
	all := []string{succeeds, fails, crashes}
	scenes := []scene{{"before the approval is heeded", func(t *testing.T, c *cell) {
		node, rem := c.approved(t)
		c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		ended(t, c.carriedOut(t, rem.Name, c.one()), v1alpha1.Stale, "node "+node, "unschedulable")
		c.wrote(t, nil)
		c.closed(t, node)
	}}}
	for _, how := range all {
		scenes = append(scenes, scene{"before the plan, which " + how, func(t *testing.T, c *cell) { closedBefore(t, c, how) }})
	}
	for _, during := range []struct {
		step string
		how  []string
	}{
		{"lock", []string{succeeds}}, {"cordon", []string{crashes}}, {"evict", all}, {"wait until nobody", []string{fails, crashes}},
		{"set nvidia.com/mig.config=", all}, {"wait for MIG manager", all}, {"verify", []string{succeeds, crashes}},
		{"unlock", []string{succeeds}}, {"wait until the pod", []string{crashes}},
	} {
		for _, how := range during.how {
			scenes = append(scenes, scene{during.step + ", " + how, func(t *testing.T, c *cell) { closedDuring(t, c, during.step, how) }})
		}
	}
	l.play(t, controlplane.Some(scenes, 3), func() string { return "0 cordons of a person lost" })
}

// goes prepares how the carrying out goes.
func (c *cell) goes(how, node string) func() *Executor {
	c.stack.SetFaults(node, sim.Faults{Fail: how == fails})
	if how == crashes {
		c.crash.always = true
		return c.executor
	}
	return c.one()
}

// closedBefore has a plan for a closed node, which leaves it closed, under way.
func closedBefore(t *testing.T, c *cell, how string) {
	node, d, f, _ := repartition(t, c)
	c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	f.Actions[0].Relies["unschedulable"] = "true"
	f.Plan = diagnosis.PlanHash(d.Incident, d.Pods.Since, f.Actions)
	c.deps.Deadlines.Run = time.Second // the pod does not run: its node is closed
	rem := c.underWay(t, d, f)
	rem = c.carriedOut(t, rem.Name, c.goes(how, node))
	released := strings.Contains(stepsOf(rem), " 0/release")
	if ended(t, rem, v1alpha1.Failed); released != (how != fails) {
		t.Errorf("released %v, journal %s", released, stepsOf(rem))
	}
	c.closed(t, node)
	c.noLocks(t)
}

// closedDuring has a person close the node at a step. Where we have closed it, kubectl
// writes nothing: the person applies it (server-side), or opens and closes it.
func closedDuring(t *testing.T, c *cell, step, how string) {
	node, rem := c.approved(t)
	c.deps.Deadlines.Run = 2 * time.Second // it runs at once, or not at all
	ours := true
	c.on[step] = func() {
		switch step {
		case "evict":
			c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
			c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		case "lock", "cordon", "unlock", "wait until the pod":
			ours = false
			c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		default:
			if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node, types.ApplyPatchType, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"spec":{"unschedulable":true}}`, node),
				metav1.PatchOptions{FieldManager: "gitops"}); err != nil {
				t.Error(err)
			}
		}
	}
	rem = c.carriedOut(t, rem.Name, c.goes(how, node))
	switch {
	case ours && how == fails:
		ended(t, rem, v1alpha1.Failed, "MIG manager says failed")
	case ours:
		ended(t, rem, v1alpha1.Failed, "stays cordoned", node)
	case step == "lock" || step == "cordon":
		ended(t, rem, v1alpha1.Stale, "unschedulable")
		c.evictions(t, diagnosis.Fix{}, 0)
	}
	c.closed(t, node)
	c.noLocks(t)
}

// closed wants a node cordoned, without a mark of ours.
func (c *cell) closed(t *testing.T, node string) {
	t.Helper()
	if n := c.node(t, node); !n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
}

// underWay records a plan that was approved and proved, and has not written yet.
func (c *cell) underWay(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix) *v1alpha1.Remediation {
	t.Helper()
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	act.Begin(rem, c.state(t), f, time.Now())
	c.save(t, rem)
	return rem
}

// save writes a status as somebody who has the right to.
func (c *cell) save(t *testing.T, rem *v1alpha1.Remediation) {
	t.Helper()
	if err := (plan.Store{Dynamic: c.Dynamic()}).Save(t.Context(), rem); err != nil {
		t.Fatal(err)
	}
}

// stepsOf lists the steps that were begun.
func stepsOf(rem *v1alpha1.Remediation) string {
	var out strings.Builder
	for _, e := range rem.Status.Journal {
		out.WriteString(" " + string(e.Step))
	}
	return out.String()
}
