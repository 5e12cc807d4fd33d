package homes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// OtherImage is how a machine gets an image whose parts fit together: what its container runtime is configured
// to run is in it.
func OtherImage(n *view.Node) (steps, commands []string) {
	steps = []string{"see which image the machine has, and what its start-up script writes into the container runtime's configuration: the image lacks what that names", "take an image for GPUs, and make the machine again; or install the toolkit on the machine"}
	if of := ofPool(n); of != nil {
		return steps, of
	}
	return steps, append([]string{"kubectl get node " + n.Name + " -o jsonpath='{.status.nodeInfo}'"}, Configure(n)...)
}

// nodeGroup is the label by which EKS says of which of its groups a machine is.
const nodeGroup = "eks.amazonaws.com/nodegroup"

// ForGPUs is how a machine of EKS gets the image that EKS has for GPUs: with it the driver, the toolkit and NVIDIA's runtime by default
// are there, and with any other none of them (EKS user guide, "Use EKS-optimized accelerated AMIs"). None of other machines.
func ForGPUs(n *view.Node) (steps, commands []string) {
	info := n.Status.NodeInfo
	ofEKS := strings.HasPrefix(info.OSImage, "Amazon Linux") && strings.Contains(info.KubeletVersion, "-eks-")
	if !ofEKS && !strings.HasPrefix(info.OSImage, "Bottlerocket") {
		return nil, nil
	}
	steps = []string{"see which image the machine has: of EKS's, those for GPUs have NVIDIA's driver, its toolkit and its runtime by default (AL2_x86_64_GPU, AL2023_x86_64_NVIDIA, BOTTLEROCKET_x86_64_NVIDIA), the others none of them",
		"with another, have its group take the one for GPUs: its machines are made again", "with that one, see what nvidia-smi says on the machine: one older than the GPU does not know it, and a newer one has dropped old GPUs (470 is the last for Kepler: K80)"}
	commands = ofPool(n)
	if group := n.Labels[nodeGroup]; group != "" {
		commands = []string{"aws eks describe-nodegroup --cluster-name CLUSTER --nodegroup-name " + group + " --query 'nodegroup.[amiType,releaseVersion]'  # a group keeps its type: another image is another group"}
	}
	return steps, append([]string{"kubectl debug node/" + n.Name + " -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi"}, commands...)
}

// ofPool are the commands that show, and take, the image of a machine that Karpenter has made; none of another.
func ofPool(n *view.Node) []string {
	pool := n.Labels["karpenter.sh/nodepool"]
	if pool == "" {
		return nil
	}
	return []string{"kubectl get nodeclaims -l karpenter.sh/nodepool=" + pool + " -o custom-columns=NAME:.metadata.name,NODE:.status.nodeName,IMAGE:.status.imageID,CLASS:.spec.nodeClassRef.name",
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
