package parts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// Pull is the image of a container of the pod, and what shows why it does not come.
func Pull(n *view.Node, pod *corev1.Pod, container string) (image string, commands []string) {
	commands = []string{fmt.Sprintf("kubectl -n %s describe pod %s", pod.Namespace, pod.Name)}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				image = list[i].Image
				commands = append(commands, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host crictl pull %s  # as the node does it, without the pod's pull secrets", n.Name, image))
			}
		}
	}
	return image, commands
}

// ImageField is where the GPU Operator's policy names the image of a part's container; empty where it makes no such pod.
// Releases before 1.9 take that of validations from operator.initContainer (gpu-operator api, ClusterPolicySpec).
func ImageField(pod *corev1.Pod, container, image string) string {
	switch {
	case !strings.HasPrefix(pod.Name, "nvidia-"):
		return ""
	case strings.HasSuffix(container, "-validation") && strings.Contains(image, "nvidia/cuda"):
		return "operator.initContainer"
	case strings.HasSuffix(container, "-validation"):
		return "validator"
	case strings.HasPrefix(pod.Name, "nvidia-container-toolkit"):
		return "toolkit"
	case strings.HasPrefix(pod.Name, "nvidia-driver") && container == "k8s-driver-manager":
		return "driver.manager"
	case strings.HasPrefix(pod.Name, "nvidia-driver"):
		return "driver"
	}
	return "devicePlugin"
}
