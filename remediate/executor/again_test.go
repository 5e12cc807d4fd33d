package executor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// What was done for a wait is no answer to the next one: an incident that waits again
// after its plan has ended gets a plan of its own, though all that is written is the same,
// and so does another incident.
func TestWaitsAgain(t *testing.T) {
	c := newCellOn(t, controlplane.Start(t))
	c.limits(t, "coolDown: 0s")
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.Cordoned = true })
	closed := c.node(t, node)
	var plans []string
	var last time.Time
	for _, name := range []string{"notebook", "notebook", "another"} {
		controlplane.Eventually(t, 5*time.Second, "another wait", func() (bool, string) { // creation times are whole seconds
			return time.Now().Truncate(time.Second).After(last), ""
		})
		last = c.stays(t, name, spec("1g.5gb", "")).CreationTimestamp.Time
		d, f := c.finds(t, diagnosis.UncordonNode)
		rem := c.recorded(t, d, f)
		if rem.Status.Phase != "" {
			t.Fatalf("%s: the plan is one that is %s: %s", name, rem.Status.Phase, rem.Status.Message)
		}
		plans = append(plans, rem.Name)
		c.decide(t, rem, "alice", v1alpha1.Approve)
		ended(t, c.carriedOut(t, rem.Name, c.one()), v1alpha1.Succeeded, name+" runs")
		if err := c.Client().CoreV1().Pods(c.ns).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatal(err)
		}
		c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = true, closed.Spec.Taints })
	}
	if plans[0] == plans[1] || plans[1] == plans[2] {
		t.Errorf("plans %q", plans)
	}
}
