package stack

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// twin is another node, of the same image, runtime and kind of machine, on which a pod of the same DaemonSet has
// announced GPUs; nil for none. What the two have alike is not at fault.
func (l *pluginLink) twin() *view.Node {
	by := metav1.GetControllerOfNoCopy(l.pod) // it is a DaemonSet's
	for _, n := range l.s.w.SortedNodes() {
		info, own := n.Status.NodeInfo, l.n.Status.NodeInfo
		if n == l.n || info.ContainerRuntimeVersion != own.ContainerRuntimeVersion || info.OSImage != own.OSImage || info.KernelVersion != own.KernelVersion ||
			n.Labels[corev1.LabelInstanceTypeStable] != l.n.Labels[corev1.LabelInstanceTypeStable] || !announces(n) {
			continue
		}
		if p := l.s.kit.Pod(n, parts.Plugin); p != nil && metav1.IsControlledBy(p, &metav1.ObjectMeta{UID: by.UID}) {
			return n
		}
	}
	return nil
}

// announces says whether a device plugin has told the kubelet of GPUs, sound or not.
func announces(n *view.Node) bool {
	for _, stock := range n.Facts().Stocks() {
		if stock.Capacity > 0 {
			return true
		}
	}
	return false
}

// asOnTwin looks at the one machine that differs, and starts its plugin alone again.
func (l *pluginLink) asOnTwin(twin *view.Node) Mend {
	n, pod := l.n, l.pod
	debug := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", n.Name)
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("see what the container runtime of %s hands its device plugin, which on %s it does", n.Name, twin.Name), Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.MediumRisk, Minutes: 15, Stops: []*corev1.Pod{pod},
		Steps: []string{"see on the machine that nvidia-smi works: without a driver no runtime helps", "see that its container runtime is configured for NVIDIA's as that of " + twin.Name + " is", "see that its CDI specification names the GPUs, where its runtime goes by one; set the runtime's mode to legacy where none can be made", "or give the machine back, and have another made"},
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s --tail=30  # \"No devices found\": it was handed none", pod.Namespace, pod.Name),
			debug + "sh -c 'nvidia-smi -L; nvidia-ctk cdi list; grep -n mode /etc/nvidia-container-runtime/config.toml; grep -rn -i nvidia /etc/containerd'  # and on " + twin.Name,
			debug + "sh -c 'nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml || nvidia-ctk config --in-place --set nvidia-container-runtime.mode=legacy'  # then restart its container runtime: pods run on",
			fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again", pod.Namespace, pod.Name)}}
}
