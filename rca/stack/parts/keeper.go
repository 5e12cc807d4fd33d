package parts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// writtenIn is where an operator has it written, in the object that a DaemonSet is made from, what the pods
// of that tolerate: by the object's kind and the part that the DaemonSet is (ROCm/gpu-operator api/v1alpha1,
// intel-device-plugins-for-kubernetes pkg/apis/deviceplugin/v1).
var writtenIn = map[string]string{
	"DeviceConfig.amd.com " + string(AMDPlugin):                     `{"spec":{"devicePlugin":{"devicePluginTolerations":%s}}}`,
	"GpuDevicePlugin.deviceplugin.intel.com " + string(IntelPlugin): `{"spec":{"tolerations":%s}}`,
}

// keeper is the object that a DaemonSet is made from: who makes it puts back what is changed in the
// DaemonSet itself. Empty for one that people have made.
func (d *Set) keeper() (resource, kind string) {
	by := metav1.GetControllerOfNoCopy(d)
	if by == nil {
		return "", ""
	}
	kind = by.Kind
	if group, _, named := strings.Cut(by.APIVersion, "/"); named {
		kind += "." + group
	}
	return strings.ToLower(kind) + " " + by.Name, kind
}

// tolerate is the command that has its pods tolerate taints too, where that lasts.
func (d *Set) tolerate(taints []corev1.Taint) string {
	has := d.Spec.Template.Spec.Tolerations
	resource, kind := d.keeper()
	if resource == "" {
		return Tolerate(d.Namespace, d.Name, has, taints)
	}
	if patch := writtenIn[kind+" "+string(d.Role)]; patch != "" {
		return fmt.Sprintf("kubectl -n %s patch %s --type=merge -p '%s'", d.Namespace, resource, fmt.Sprintf(patch, Tolerations(has, taints)))
	}
	return fmt.Sprintf("%s  # tolerations: %s", d.edit(), Tolerations(has, taints))
}

// edit is the command that opens what it is made from.
func (d *Set) edit() string {
	if resource, _ := d.keeper(); resource != "" {
		return fmt.Sprintf("kubectl -n %s edit %s", d.Namespace, resource)
	}
	return fmt.Sprintf("kubectl -n %s edit daemonset %s", d.Namespace, d.Name)
}

// amdCard and amdPart are how the rules of AMD's operator have node feature discovery label a machine: one with a card, and
// one with a virtual function of one (ROCm/gpu-operator helm-charts-k8s, NodeFeatureRule). Its DeviceConfig chooses by the first.
const (
	amdCard = "feature.node.kubernetes.io/amd-gpu"
	amdPart = "feature.node.kubernetes.io/amd-vgpu"
)

// selectParts is the command by which AMD's operator serves nodes with virtual functions beside those with cards, where a
// label of cards is what the node misses: node feature discovery writes such labels, and nobody else. Empty for any other.
func (d *Set) selectParts(n *view.Node, missing string) (title, command string) {
	resource, kind := d.keeper()
	if kind != "DeviceConfig.amd.com" || missing != amdCard+"=true" || n.Labels[amdPart] != "true" {
		return "", ""
	}
	_, name, _ := strings.Cut(resource, " ")
	return fmt.Sprintf("make a DeviceConfig like %s that selects nodes by %s=true, as %s is labelled: it has a virtual function of a card", name, amdPart, n.Name),
		fmt.Sprintf(`kubectl -n %s get %s -o json | jq '{apiVersion, kind, metadata: {namespace: .metadata.namespace, name: "%s-vgpu"}, spec: (.spec + {selector: {"%s": "true"}})}' | kubectl apply -f -  # the one that is there goes on serving whole cards`, d.Namespace, resource, name, amdPart)
}
