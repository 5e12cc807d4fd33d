package retry

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/view"
)

// Uncounted is what a scheduler is to do that leaves out what a RuntimeClass adds.
func Uncounted(c *edit.Workload) []edit.Change {
	if t := c.Kubelet.Turned(); t == nil || t.Behind != kubelet.OverheadLeftOut {
		return nil
	}
	return []edit.Change{countOverhead(c)}
}

// askBesideOverhead asks for so little that, wherever that alone is left, the overhead is left beside it: a
// scheduler that counts the first alone then takes no node that refuses it.
func askBesideOverhead(c *edit.Workload, t *kubelet.Turned) (edit.Change, bool) {
	name, adds := c.Kubelet.Overhead(t)
	most := view.PodRequests(c.Pod)[name]
	most.Sub(adds)
	where := nodeaffinity.GetRequiredNodeAffinity(c.Pod)
	nodes := slices.DeleteFunc(slices.Clone(c.Cluster.SortedNodes()), func(n *view.Node) bool {
		ok, err := where.Match(n.Node)
		return !ok || err != nil || n.Spec.Unschedulable
	})
	var best resource.Quantity
	for _, n := range nodes {
		asks := left(n, name, adds)
		refuses := func(o *view.Node) bool {
			free, beside := o.Free(name), left(o, name, adds)
			return free.Cmp(asks) >= 0 && beside.Cmp(asks) < 0
		}
		if asks.Cmp(best) > 0 && asks.Cmp(most) < 0 && !slices.ContainsFunc(nodes, refuses) {
			best = asks
		}
	}
	if best.Sign() <= 0 || len(c.Pod.Spec.Containers) != 1 {
		return edit.Change{}, false
	}
	ch := c.ChangeRequest(diagnosis.KubeletAdmissionRefused, fmt.Sprintf("ask for %s %s (less than asked)", best.String(), name), edit.AskAtMost(corev1.ResourceList{name: best}))
	ch.Untestable = "how " + c.Queue.SchedulerName() + " counts no copy can show"
	return ch, true
}

// left is what a node has free of a resource beside so much more.
func left(n *view.Node, name corev1.ResourceName, beside resource.Quantity) resource.Quantity {
	free := n.Free(name)
	free.Sub(beside)
	return free
}

// countOverhead is for a scheduler that places pods by what their containers ask alone.
func countOverhead(c *edit.Workload) edit.Change {
	by, class := c.Queue.SchedulerName(), ptr.Deref(c.Pod.Spec.RuntimeClassName, "")
	ch := edit.LookAt(diagnosis.KubeletAdmissionRefused, fmt.Sprintf("have %s count the overhead of RuntimeClass %s: a version that does", by, class), "how "+by+" counts no copy can show",
		"kubectl get runtimeclass "+class+" -o jsonpath='{.overhead.podFixed}'",
		"kubectl get pods -A -o custom-columns=NS:.metadata.namespace,POD:.metadata.name,IMAGE:.spec.containers[*].image | grep "+by+"  # KAI counts it from v0.7.13 on")
	ch.Minutes, ch.Risk = 15, diagnosis.MediumRisk
	ch.Steps = []string{"see by its version whether it counts what a RuntimeClass adds", "put one in its place that does: until then a pod that is made again may be sent where it is refused"}
	return ch
}
