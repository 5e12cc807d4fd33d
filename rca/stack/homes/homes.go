// Package homes knows where distributions of Kubernetes keep their container runtime, and how that is
// told of NVIDIA's.
package homes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// Home is where a distribution of Kubernetes keeps its containerd: not where NVIDIA's tools look by
// themselves (/run/containerd, /etc/containerd). By the distributions' own guides to the GPU Operator.
type Home struct {
	Name string
	is   func(n *view.Node) bool
	// build ends the version of the containerd that the distribution brings along: another one is the
	// machine's own, in the usual places (container-runtime-endpoint). Empty: it cannot be told so.
	build string
	// Socket is where containerd listens, Config the file that its configuration takes more from. Empty:
	// the distribution finds NVIDIA's runtime by itself, and writes over what is put there.
	Socket, Config string
	Machine        []string // what configures it by hand
	// Show prints what containerd is configured with, Restart starts it again: each one command, for a shell that runs only that
	// on the machine.
	Show, Restart string
}

// homes are those that are known; of others NVIDIA's defaults hold.
var homes = []Home{
	{"k3s", kubelet("+k3s"), "-k3s", "/run/k3s/containerd/containerd.sock", "",
		[]string{"# on the machine: k3s finds NVIDIA's runtime by itself once the toolkit is installed, when it starts", "systemctl try-restart k3s k3s-agent"},
		"cat /var/lib/rancher/k3s/agent/etc/containerd/config.toml", "systemctl try-restart k3s k3s-agent"},
	{"RKE2", kubelet("+rke2"), "-k3s", "/run/k3s/containerd/containerd.sock", "",
		[]string{"# on the machine: RKE2 finds NVIDIA's runtime by itself once the toolkit is installed, when it starts", "systemctl try-restart rke2-server rke2-agent"},
		"cat /var/lib/rancher/rke2/agent/etc/containerd/config.toml", "systemctl try-restart rke2-server rke2-agent"},
	{"k0s", kubelet("+k0s"), "", "/run/k0s/containerd.sock", "/etc/k0s/containerd.d/nvidia.toml",
		[]string{"# on the machine: k0s reads what is in that folder when it starts", "nvidia-ctk runtime configure --runtime=containerd --config=/etc/k0s/containerd.d/nvidia.toml --set-as-default && systemctl restart k0sworker  # k0scontroller on a controller that works, too"},
		"cat /etc/k0s/containerd.d/nvidia.toml", "systemctl restart k0sworker  # k0scontroller on a controller that works, too"},
	{"MicroK8s", func(n *view.Node) bool { return n.Labels["microk8s.io/cluster"] == "true" }, "", "/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/current/args/containerd-template.toml",
		[]string{"# on the machine: MicroK8s makes containerd's configuration from a template when it starts; what is written beside it is lost", "nvidia-ctk runtime configure --runtime=containerd --config=/var/snap/microk8s/current/args/containerd-template.toml --set-as-default && snap restart microk8s.daemon-containerd"},
		"cat /var/snap/microk8s/current/args/containerd-template.toml", "snap restart microk8s.daemon-containerd"},
}

func kubelet(suffix string) func(*view.Node) bool {
	return func(n *view.Node) bool { return strings.Contains(n.Status.NodeInfo.KubeletVersion, suffix) }
}

// Of is where the node's containerd is; nil where it is in the usual places, or another runtime runs.
func Of(n *view.Node) *Home {
	runtime, version, _ := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, "://")
	if runtime != "" && runtime != "containerd" {
		return nil
	}
	for i := range homes {
		if homes[i].is(n) && (version == "" || strings.Contains(version, homes[i].build)) {
			return &homes[i]
		}
	}
	return nil
}

// Units are whose journals tell of the node's pods: k3s and RKE2 run kubelet and containerd in one.
func Units(n *view.Node) string {
	switch h := Of(n); {
	case h == nil:
	case h.Name == "k3s":
		return "k3s -u k3s-agent"
	case h.Name == "RKE2":
		return "rke2-server -u rke2-agent"
	case h.Name == "k0s":
		return "k0sworker -u k0scontroller"
	}
	return "kubelet -u containerd -u crio"
}

// SocketEnv and ConfigEnv are by which the GPU Operator's toolkit is told of another place
// (spec.toolkit.env of its ClusterPolicy).
const (
	SocketEnv = "CONTAINERD_SOCKET"
	ConfigEnv = "CONTAINERD_CONFIG"
)

// Untold is what the toolkit is still to be told by its ClusterPolicy, and the command that adds it: a
// list that is written replaces the one before.
func (h *Home) Untold(policies []*unstructured.Unstructured, policy string) (lacks []string, command string) {
	var has, items []string
	for _, p := range policies {
		if p.GetName() != policy {
			continue
		}
		env, _, _ := unstructured.NestedSlice(p.Object, "spec", "toolkit", "env") // what is no list has none
		for _, item := range env {
			if e, ok := item.(map[string]any); ok {
				has = append(has, fmt.Sprint(e["name"]))
			}
		}
	}
	for _, e := range [][2]string{{SocketEnv, h.Socket}, {ConfigEnv, h.Config}} {
		if e[1] != "" && !slices.Contains(has, e[0]) {
			lacks, items = append(lacks, e[0]+"="+e[1]), append(items, fmt.Sprintf(`{"name":%q,"value":%q}`, e[0], e[1]))
		}
	}
	if len(has) == 0 {
		return lacks, fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"toolkit":{"env":[%s]}}}'`, policy, strings.Join(items, ","))
	}
	const add = `{"op":"add","path":"/spec/toolkit/env/-","value":`
	return lacks, fmt.Sprintf(`kubectl patch clusterpolicy %s --type=json -p '[%s%s}]'`, policy, add, strings.Join(items, "},"+add))
}

// Configure are the commands on a machine that have its container runtime know NVIDIA's.
func Configure(n *view.Node) []string {
	if n.Labels["minikube.k8s.io/name"] != "" {
		return []string{"# on the machine where minikube runs: its node is given GPUs when it is made, and its runtime is set up for them then; what is in it is lost", "minikube delete -p " + n.Labels["minikube.k8s.io/name"] + " && minikube start -p " + n.Labels["minikube.k8s.io/name"] + " --driver=docker --container-runtime=docker --gpus=all"}
	}
	if h := Of(n); h != nil {
		return slices.Clone(h.Machine)
	}
	runtime, _, _ := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, ":")
	name := map[string]string{"cri-o": "crio", "docker": "docker"}[runtime]
	name = cmp.Or(name, "containerd")
	return []string{"# on the machine:", "nvidia-ctk runtime configure --runtime=" + name + " --set-as-default && systemctl restart " + name}
}

// Notes are what is otherwise with a machine than people expect of one with a GPU.
func Notes(n *view.Node) []string {
	if !strings.Contains(n.Status.NodeInfo.KernelVersion, "microsoft-standard-WSL") {
		return nil
	}
	return []string{"it runs in WSL2: the driver is that of Windows, so none is to be installed in Linux; see that the container toolkit and the device plugin are of versions that know WSL2 (/dev/dxg)"}
}
