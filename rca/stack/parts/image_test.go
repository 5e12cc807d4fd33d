package parts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// Of an image that does not come, the node's own word is asked for, and where the GPU Operator has it from.
func TestImagesThatDoNotCome(t *testing.T) {
	const cuda, validator, other = "nvcr.io/nvidia/cuda@sha256:ed", "nvcr.io/nvidia/cloud-native/gpu-operator-validator:v1", "nvcr.io/nvidia/k8s/container-toolkit:v1"
	n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
	for name, row := range map[string]struct{ pod, container, image, field string }{
		"of a validation, before 1.9": {"nvidia-container-toolkit-daemonset-x", "driver-validation", cuda, "operator.initContainer"},
		"of a validation":             {"nvidia-device-plugin-daemonset-x", "toolkit-validation", validator, "validator"},
		"of the toolkit":              {"nvidia-container-toolkit-daemonset-x", "nvidia-container-toolkit-ctr", other, "toolkit"},
		"of the device plugin":        {"nvidia-device-plugin-daemonset-x", "nvidia-device-plugin", other, "devicePlugin"},
		"of the driver":               {"nvidia-driver-daemonset-x", "nvidia-driver-ctr", other, "driver"},
		"of the driver's manager":     {"nvidia-driver-daemonset-x", "k8s-driver-manager", other, "driver.manager"},
		"of another maker":            {"amdgpu-x", "main", other, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: row.pod}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "first"}}
		pod.Spec.Containers = []corev1.Container{{Name: row.container, Image: row.image}}
		image, commands := Pull(n, pod, row.container)
		want := "kubectl -n g describe pod " + row.pod + "; kubectl debug node/n -it --image=busybox --profile=sysadmin -- chroot /host crictl pull " + row.image + "  # as the node does it, without the pod's pull secrets"
		if field := ImageField(pod, row.container, image); image != row.image || field != row.field || strings.Join(commands, "; ") != want {
			t.Errorf("%s: %s of %q by %q", name, image, field, commands)
		}
	}
}
