package parts

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// aksConditions are the conditions that AKS's own GPU nodes have (documentation of AKS: GPU health monitoring; AKS issue 4735).
var aksConditions = []corev1.NodeConditionType{"UnhealthyNvidiaDevicePlugin", "GPUMissing", "XIDErrors", "NVLinkStatusInactive"}

// OfAKS is the first of those conditions that a node has, true or not; nil where it has none.
func OfAKS(n *view.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(n.Status.Conditions, func(k corev1.NodeCondition) bool { return slices.Contains(aksConditions, k.Type) })
	if i < 0 {
		return nil
	}
	return &n.Status.Conditions[i]
}

// ails says whether a condition tells that a GPU of the node, or what announces it, is not well: as AKS's node problem detector has
// it, GKE's device plugin (container-engine-accelerators pull request 497), or EKS's node monitoring agent, which says it by False.
func ails(k corev1.NodeCondition) bool {
	switch k.Type {
	case "XidCriticalError":
		return k.Status == corev1.ConditionTrue
	case "AcceleratedHardwareReady":
		return k.Status == corev1.ConditionFalse
	}
	return k.Status == corev1.ConditionTrue && slices.Contains(aksConditions, k.Type)
}

// Ailing are the conditions of a node by which its cloud says that a GPU of it, or what announces it, is not well.
func Ailing(n *view.Node) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, k := range n.Status.Conditions {
		if ails(k) {
			out = append(out, OfCondition(n, k))
		}
	}
	return out
}

// OfCondition quotes a condition of a node, with what it says where it tells that something is not well.
func OfCondition(n *view.Node, k corev1.NodeCondition) diagnosis.Evidence {
	path, status := "status.conditions[type="+string(k.Type)+"]", string(k.Status)
	fact, claims := "condition "+string(k.Type)+"="+status, []diagnosis.Claim{diagnosis.That(path+".status", "", diagnosis.Is, status)}
	if told := view.Quotable(k.Reason+" "+k.Message, 160); told != "" && ails(k) {
		fact += ": " + told
		for _, words := range []string{k.Reason, k.Message} {
			if words = view.Quotable(words, 100); words != "" {
				claims = append(claims, diagnosis.That(path, "", diagnosis.Contains, strings.TrimSuffix(words, "…")))
			}
		}
	}
	return diagnosis.Fact(n.Ref(), fact, claims...)
}
