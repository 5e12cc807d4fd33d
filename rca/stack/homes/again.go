package homes

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/view"
)

// Again has a machine made again with the image of another: of Karpenter's pools, and of EKS's groups, by what names the image there.
func Again(w *view.Cluster, n, like *view.Node) []string {
	out := []string{fmt.Sprintf("kubectl get nodes %s %s -o wide  # system, kernel and container runtime of both", n.Name, like.Name)}
	if of := ofPool(n); of != nil {
		out = append(out, of[:2]...)
		name := "NAME"
		if claim := w.Outlook().ClaimOf(n.Name); claim != nil {
			name = claim.Name
		}
		return append(out, "kubectl delete nodeclaim "+name+"  # once the class names the image of the other: Karpenter makes another machine while pods wait, and who runs on this one stops")
	}
	if group := n.Labels[nodeGroup]; group != "" {
		out = append(out, "aws eks describe-nodegroup --cluster-name CLUSTER --nodegroup-name "+group+" --query 'nodegroup.[amiType,releaseVersion]'",
			"aws eks update-nodegroup-version --cluster-name CLUSTER --nodegroup-name "+group+" --release-version RELEASE  # that of the other; the machines of the group are made again one by one")
	}
	return append(out, fmt.Sprintf("kubectl drain %s --ignore-daemonsets --delete-emptydir-data  # then have it made again with the image of the other", n.Name))
}

// Hook shows what NVIDIA's hook goes by on a machine, and finds there.
func Hook(n *view.Node) []string {
	return []string{"# on the machine of " + n.Name + ":", "grep -n -e ldconfig -e mode /etc/nvidia-container-runtime/config.toml; nvidia-container-cli --version; nvidia-container-cli -k -d /dev/stderr info",
		"# another release of the toolkit (libnvidia-container), or of the machine's image, may do it; or have GPUs described for CDI, which needs no hook: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml && nvidia-ctk config --in-place --set nvidia-container-runtime.mode=cdi"}
}

// Jetson has the runtime of a Jetson go by what JetPack lists, in place of CDI.
func Jetson(n *view.Node) []string {
	name, _, _ := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, ":")
	return []string{"# on the machine:", "nvidia-ctk --version; cat /etc/nv_tegra_release; ls /etc/nvidia-container-runtime/host-files-for-container.d  # the lists: packages nvidia-container-csv-* or l4t-* bring them",
		"nvidia-ctk config --in-place --set nvidia-container-runtime.mode=csv && systemctl restart " + name}
}
