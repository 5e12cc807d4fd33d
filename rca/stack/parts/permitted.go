package parts

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// NotPermitted is NVML's word for what its caller may not do: NVIDIA's device plugin reads GPUs that are in MIG mode only by
// CAP_SYS_ADMIN, or by the monitoring device that NVIDIA's runtime hands it for NVIDIA_MIG_MONITOR_DEVICES
// (k8s-device-plugin issues 229, 260, 399; nvidia-container-toolkit issue 1740).
const NotPermitted = "Insufficient Permissions"

// Permit are the commands that let the device plugin's pod read GPUs in MIG mode: its DaemonSet is changed, or what makes
// that.
func Permit(p *corev1.Pod, owner *Set) []string {
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil {
		return nil
	}
	get := fmt.Sprintf("kubectl -n %s get daemonset %s -o jsonpath='{.spec.template.spec.containers[*].securityContext}'", p.Namespace, by.Name)
	if owner != nil && owner.OfOperator() {
		return []string{get, "# the GPU Operator has it privileged: see what else changes its pods (a policy, a webhook)"}
	}
	return []string{get, fmt.Sprintf(`kubectl -n %s patch daemonset %s -p '{"spec":{"template":{"spec":{"containers":[{"name":"%s","securityContext":{"privileged":true,"allowPrivilegeEscalation":true,"capabilities":null},"env":[{"name":"NVIDIA_MIG_MONITOR_DEVICES","value":"all"}]}]}}}}'`, p.Namespace, by.Name, PluginContainer(p)),
		fmt.Sprintf("kubectl -n %s rollout status daemonset %s  # where Helm has made it, set it there, too", p.Namespace, by.Name)}
}

// PluginContainer is the name of the device plugin's container in a pod.
func PluginContainer(p *corev1.Pod) string {
	for _, c := range p.Spec.Containers {
		if IsPlugin(c) {
			return c.Name
		}
	}
	if len(p.Spec.Containers) > 0 {
		return p.Spec.Containers[0].Name
	}
	return view.PluginName
}
