package makers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// vcuda shares NVIDIA's GPUs by hundredths and by their memory (tkestack/gpu-manager, and its scheduler's extender gpu-admission). It writes
// what it says to files on the machine.
var vcuda = &Maker{
	Whose: "gpu-manager's", Has: "has GPUs that gpu-manager is to share", Plug: "gpu-manager", Plugin: parts.VcudaPlugin,
	Announces: func(r corev1.ResourceName) bool { return strings.HasPrefix(string(r), "tencent.com/vcuda-") },
	Several:   true,
	Labels:    []string{"nvidia-device-enable=enable"},
	Behind:    "the driver serves no card, or its flag --cgroup-driver is not the container runtime's", Image: "gpu-manager", Driver: "nvidia", Shows: "nvidia-smi",
	Steps: []string{"have NVIDIA's driver on the machine, and not NVIDIA's runtime as the one by default", "label the node nvidia-device-enable=enable, and install gpu-manager and its scheduler's extender (gpu-admission)",
		"where the container runtime's cgroup driver is systemd: --cgroup-driver=systemd in EXTRA_FLAGS of gpu-manager"},
	Install: func(node string) []string {
		return []string{"kubectl label node " + node + " nvidia-device-enable=enable", "kubectl create sa gpu-manager -n kube-system", "kubectl create clusterrolebinding gpu-manager-role --clusterrole=cluster-admin --serviceaccount=kube-system:gpu-manager",
			"# and its DaemonSet: gpu-manager.yaml of github.com/tkestack/gpu-manager, as apps/v1 with a selector"}
	},
	Look: func(n *view.Node) []string {
		return []string{"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host sh -c 'tail -n 50 /etc/gpu-manager/log/*'  # its own log: the pod's has less",
			"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host sh -c 'docker info | grep -i cgroup'  # systemd: EXTRA_FLAGS of gpu-manager has to have --cgroup-driver=systemd"}
	},
}
