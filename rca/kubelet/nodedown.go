package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// downWith is for the volume that is on a node which does not answer: its pods there are on their way out and cannot end,
// for only their kubelet could say so, and the volume is let go of once they have ended. A person knows whether the machine
// is off; by the taint out-of-service (1.28 and later) they say it. False where the node answers.
func (s stopped) downWith(stop *Stop, users []*corev1.Pod, what string) bool {
	on := users[0].Spec.NodeName
	n := s.w.Nodes[on]
	if n == nil || slices.ContainsFunc(users, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil }) {
		return false
	}
	i := slices.IndexFunc(n.Status.Conditions, func(k corev1.NodeCondition) bool { return k.Type == corev1.NodeReady })
	if i < 0 || n.Status.Conditions[i].Status != corev1.ConditionUnknown {
		return false
	}
	status := diagnosis.That("status.conditions[type=Ready].status", "", diagnosis.Is, string(corev1.ConditionUnknown))
	stop.Says = strings.Replace(stop.Says, "; it said: ", "; "+on+" does not answer, so that it cannot end there; it said: ", 1)
	stop.Words = "its volume is on a dead node"
	stop.Evidence = append(stop.Evidence, diagnosis.Fact(n.Ref(), "its kubelet does not answer", status))
	stop.Title = fmt.Sprintf("once %s is surely off, say so by taint node.kubernetes.io/out-of-service: %s is let go of then", on, what)
	stop.Risk, stop.StopsUnknown = diagnosis.MediumRisk, true
	stop.Commands = []string{
		"kubectl describe node " + on + "  # since when it does not answer; then see at the machine, or at its cloud, that it is off: a volume that two machines write to is lost",
		fmt.Sprintf("kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute  # pods on it that are on their way out are gone at once, and their volumes are detached", on),
		fmt.Sprintf("kubectl taint node %s node.kubernetes.io/out-of-service-  # once it is back; if it never comes back: kubectl delete node %s", on, on),
	}
	return true
}
