package parts

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// OperandLabels are those by which the GPU Operator's parts for containers would come to the node,
// as far as it lacks them or has them empty.
func (k *Kit) OperandLabels(n *view.Node) []string {
	var out []string
	for _, r := range []Role{Driver, Toolkit, Plugin, Validator, Features} {
		for _, d := range k.Sets(r) {
			for key, value := range d.Spec.Template.Spec.NodeSelector {
				if label := key + "=" + value; strings.HasPrefix(key, Deploys) && n.Labels[key] == "" && !slices.Contains(out, label) {
					out = append(out, label)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// Foreign are the taints that the GPU Operator's operands do not tolerate by default.
func Foreign(n *view.Node) []string {
	var out []string
	for _, t := range ForeignTaints(n) {
		out = append(out, t.ToString())
	}
	return out
}

// ForeignTaints are the same as they stand on the node.
func ForeignTaints(n *view.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") && (t.Key != string(view.WholeGPU) || t.Effect == corev1.TaintEffectNoExecute) {
			out = append(out, t)
		}
	}
	return out
}

// operatorName is the container, and the label app of the pods, of the GPU Operator itself, by its
// chart and on OpenShift alike (gpu-operator deployments, bundle).
const operatorName = "gpu-operator"

// IsOperator says whether a pod is the GPU Operator.
func IsOperator(p *corev1.Pod) bool { return isOperator(p.Labels, p.Spec.Containers) }

// OperatorDeployed is the Deployment of the GPU Operator; nil where none is seen.
func OperatorDeployed(w *view.Cluster) *appsv1.Deployment {
	for _, d := range w.State.Deployments {
		if isOperator(d.Spec.Template.Labels, d.Spec.Template.Spec.Containers) {
			return d
		}
	}
	return nil
}

func isOperator(labels map[string]string, containers []corev1.Container) bool {
	return labels["app"] == operatorName && slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == operatorName })
}
