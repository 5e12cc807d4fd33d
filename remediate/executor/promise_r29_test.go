package executor

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR29: a node that is deleted, at any step, or a pod that was replaced under its
// name, ends the plan; the lock is given back, and the new pod is not evicted.
func promiseR29(t *testing.T, l lanes) {
	var scenes []scene
	add := func(step string, again bool) {
		scenes = append(scenes, scene{fmt.Sprintf("the node at %q, made again %v", step, again), func(t *testing.T, c *cell) { nodeDeleted(t, c, step, again) }})
	}
	for _, step := range []string{"", "lock", "cordon", "evict", "wait until nobody", "set nvidia.com/mig.config=", "wait for MIG manager", "verify", "unlock", "wait until the pod"} {
		add(step, false)
	}
	for _, step := range []string{"", "cordon", "evict", "set nvidia.com/mig.config=", "wait for MIG manager"} {
		add(step, true)
	}
	for _, when := range []string{"before the approval is heeded", "evict"} {
		for _, how := range []string{succeeds, crashes} {
			scenes = append(scenes, scene{"a pod, " + when + ", " + how, func(t *testing.T, c *cell) { podReplaced(t, c, when, how) }})
		}
	}
	l.play(t, controlplane.Some(scenes, 3), func() string { return "0 new pods evicted, 0 locks left" })
}

func nodeDeleted(t *testing.T, c *cell, step string, again bool) {
	node, rem := c.approved(t)
	c.deps.Deadlines.Run = time.Second
	gone := func() {
		if err := c.Client().CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if again {
			again := sim.Node{Name: node, Model: a100, Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}}.Object(time.Now())
			if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	if step == "" {
		gone()
	} else {
		c.on[step] = gone
	}
	rem = c.carriedOut(t, rem.Name, c.one())
	switch step {
	case "unlock", "wait until the pod": // its work is done, and the pod may have run
		ended(t, rem, rem.Status.Phase)
	default:
		ended(t, rem, v1alpha1.Stale, node)
		if !again {
			ended(t, rem, v1alpha1.Stale, "node "+node+" is gone")
		}
	}
	if rem.Status.Phase == v1alpha1.Parked {
		t.Error("a node that is gone is parked")
	}
	if n, err := c.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}); apierrors.IsNotFound(err) == again || err == nil && (n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" || n.Labels[nodeprobe.LabelMIGConfig] != "all-1g.5gb") {
		t.Errorf("the new node: %v, unschedulable %v, %v", err, n.Spec.Unschedulable, n.Annotations)
	}
	c.noLocks(t)
}

func podReplaced(t *testing.T, c *cell, when, how string) {
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.CPU = "2" })
	c.pod(t, "holder", on(node, spec("", "2")))
	c.running(t, "holder", 1)
	c.job(t, on(node, spec("", "1")))
	d, f := c.finds(t, diagnosis.EvictPods)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	var now []corev1.Pod
	replace := func() { now = c.replaced(t, "holder", node) }
	if c.on["evict"] = replace; when != "evict" {
		delete(c.on, "evict")
		replace()
	}
	rem = c.carriedOut(t, rem.Name, c.goes(how, node))
	if how == crashes && when == "evict" { // whether it was the eviction that made it go cannot be told
		ended(t, rem, rem.Status.Phase)
	} else if ended(t, rem, v1alpha1.Stale, c.ns+"/holder"); rem.Status.Evicted != 0 {
		t.Errorf("%d evicted", rem.Status.Evicted)
	}
	c.evictions(t, f, 0)
	c.untouched(t, now...)
	for _, p := range c.pods(t) {
		if p.Status.NominatedNodeName != "" {
			t.Errorf("%s is still nominated for %s", p.Name, p.Status.NominatedNodeName)
		}
	}
}

// replaced puts another pod of that name on the node.
func (c *cell) replaced(t *testing.T, name, node string) []corev1.Pod {
	t.Helper()
	pods := c.Client().CoreV1().Pods(c.ns)
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 20*time.Second, "the old one is gone", func() (bool, string) {
		_, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), "" // by the kubelet's hand: it must not meet the new one with a deletion
	})
	s := spec("", "2")
	s.NodeName = node
	c.stays(t, name, s)
	return c.running(t, name, 1)
}

// stays makes a pod under a name that another has left just now. The simulated kubelet deletes by name, at
// times once more than it should: then the pod is made again.
func (c *cell) stays(t *testing.T, name string, s corev1.PodSpec) *corev1.Pod {
	t.Helper()
	var made *corev1.Pod
	var since time.Time
	controlplane.Eventually(t, 20*time.Second, "pod "+name+" stays", func() (bool, string) {
		is, err := c.Client().CoreV1().Pods(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			made, since = c.pod(t, name, s), time.Now()
			return false, "made"
		case err != nil:
			return false, err.Error()
		}
		return made != nil && is.UID == made.UID && is.DeletionTimestamp == nil && time.Since(since) > time.Second, string(is.UID)
	})
	return made
}
