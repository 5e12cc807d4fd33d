package homes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// RuntimeMissing is what a container runtime says that is configured to run NVIDIA's, and finds no such program.
const RuntimeMissing = `exec: "nvidia-container-runtime": executable file not found`

// OtherImage is how a machine gets an image whose parts fit together: what its container runtime is configured
// to run is in it.
func OtherImage(n *view.Node) (steps, commands []string) {
	steps = []string{"see which image the machine has, and what its start-up script writes into the container runtime's configuration: the image lacks what that names", "take an image for GPUs, and make the machine again; or install the toolkit on the machine"}
	pool := n.Labels["karpenter.sh/nodepool"]
	if pool == "" {
		return steps, append([]string{"kubectl get node " + n.Name + " -o jsonpath='{.status.nodeInfo}'"}, Configure(n)...)
	}
	return steps, []string{"kubectl get nodeclaims -l karpenter.sh/nodepool=" + pool + " -o custom-columns=NAME:.metadata.name,NODE:.status.nodeName,IMAGE:.status.imageID,CLASS:.spec.nodeClassRef.name",
		"kubectl get nodepool " + pool + " -o jsonpath='{.spec.template.spec.nodeClassRef}'  # its images: spec.amiFamily and spec.amiSelectorTerms of an EC2NodeClass",
		"# once the class names another image: kubectl delete nodeclaim NAME  # Karpenter makes another while pods wait"}
}

// TakeIn is for a toolkit that has done its work, of which the container runtime knows nothing: it wrote another
// file than that reads, one that does not parse, or nobody has started the runtime again.
func TakeIn(n *view.Node, toolkit *corev1.Pod) (steps, commands []string) {
	machine := "kubectl debug node/" + n.Name + " -it --image=busybox --profile=sysadmin -- chroot /host "
	show, restart := "containerd config dump", "systemctl restart containerd"
	if runtime, _, _ := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, ":"); runtime == "cri-o" {
		show, restart = "crio config", "systemctl restart crio"
	}
	if h := Of(n); h != nil { // its runtime is started by the distribution
		show, restart = h.Show, h.Restart
	}
	return []string{"see which file and socket the toolkit wrote to, and whether the runtime's configuration takes that in, names a runtime nvidia, and the same cgroup driver as the kubelet", "start the runtime again; running containers keep running"},
		[]string{fmt.Sprintf("kubectl -n %s logs %s --tail=50", toolkit.Namespace, toolkit.Name), machine + show, machine + restart}
}
