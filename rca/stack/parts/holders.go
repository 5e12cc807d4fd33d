package parts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Users are the pods on the node that ask for GPUs and are no part of it, which keep the
// driver's modules in use.
func Users(n *view.Node) []*corev1.Pod { return Holding(n, view.IsGPU) }

// Holding are the pods on the node that ask for such a resource and stay.
func Holding(n *view.Node, is func(corev1.ResourceName) bool) []*corev1.Pod {
	return slices.DeleteFunc(Asking(n, is), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// Asking are the pods on the node that ask for such a resource.
func Asking(n *view.Node, is func(corev1.ResourceName) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range n.Pods {
		for name := range n.Requests[p] {
			if is(name) {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// Unready says whether the node's kubelet does not call it Ready; not of one that says nothing of that.
func Unready(n *view.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

// drainSkip is the label of pods that the drain of a driver's upgrade leaves where they are (gpu-operator, driver.upgradePolicy.drain).
const drainSkip = "nvidia.com/gpu-driver-upgrade-drain.skip"

// Undrained tells of those among pods that the drain of a driver's upgrade passes by: only people have them leave.
func Undrained(pods []*corev1.Pod) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, p := range pods {
		if p.Labels[drainSkip] == "true" {
			out = append(out, diagnosis.Fact(view.PodRef(p), "label "+drainSkip+"=true; the upgrade's drain leaves it where it is", diagnosis.That(diagnosis.Labels, drainSkip, diagnosis.Is, "true")))
		}
	}
	return out
}
