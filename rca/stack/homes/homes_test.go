package homes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// Each distribution's containerd is where its own guide says; another runtime has none of that.
func TestHomes(t *testing.T) {
	for name, k := range map[string]struct {
		kubelet, runtime string
		labels           map[string]string
		home, commands   string
	}{
		"k3s":                      {"v1.31.1+k3s1", "containerd://1.7.23-k3s2", nil, "k3s /run/k3s/containerd/containerd.sock ", "systemctl try-restart k3s k3s-agent"},
		"RKE2":                     {"v1.31.1+rke2r1", "containerd://1.7.23-k3s2", nil, "RKE2 /run/k3s/containerd/containerd.sock ", "systemctl try-restart rke2-server rke2-agent"},
		"k0s":                      {"v1.31.1+k0s", "containerd://1.7", nil, "k0s /run/k0s/containerd.sock /etc/k0s/containerd.d/nvidia.toml", "nvidia-ctk runtime configure --runtime=containerd --config=/etc/k0s/containerd.d/nvidia.toml --set-as-default && systemctl restart k0sworker  # k0scontroller on a controller that works, too"},
		"MicroK8s":                 {"v1.31.1", "containerd://1.6", map[string]string{"microk8s.io/cluster": "true"}, "MicroK8s /var/snap/microk8s/common/run/containerd.sock /var/snap/microk8s/current/args/containerd-template.toml", "nvidia-ctk runtime configure --runtime=containerd --config=/var/snap/microk8s/current/args/containerd-template.toml --set-as-default && snap restart microk8s.daemon-containerd"},
		"not MicroK8s":             {"v1.31.1", "containerd://1.6", map[string]string{"microk8s.io/cluster": "false"}, "", "nvidia-ctk runtime configure --runtime=containerd --set-as-default && systemctl restart containerd"},
		"k3s beside the machine's": {"v1.31.1+k3s1", "containerd://1.6.24", nil, "", "nvidia-ctk runtime configure --runtime=containerd --set-as-default && systemctl restart containerd"},
		"k3s of Docker":            {"v1.31.1+k3s1", "docker://24", nil, "", "nvidia-ctk runtime configure --runtime=docker --set-as-default && systemctl restart docker"},
		"minikube":                 {"v1.31.1", "docker://27", map[string]string{"minikube.k8s.io/name": "m"}, "", "minikube delete -p m && minikube start -p m --driver=docker --container-runtime=docker --gpus=all"},
		"the runtime's own":        {"v1.31.1", "cri-o://1.30", nil, "", "nvidia-ctk runtime configure --runtime=crio --set-as-default && systemctl restart crio"},
		"nothing is told":          {"v1.31.1+k3s1", "", nil, "k3s /run/k3s/containerd/containerd.sock ", "systemctl try-restart k3s k3s-agent"},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: k.labels}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: k.kubelet, ContainerRuntimeVersion: k.runtime}}}}
		got := ""
		if h := Of(n); h != nil {
			got = fmt.Sprintf("%s %s %s", h.Name, h.Socket, h.Config)
		}
		commands := Configure(n)
		if last := commands[len(commands)-1]; got != k.home || last != k.commands || !strings.HasPrefix(commands[0], "# on the machine") {
			t.Errorf("%s: %s, %q", name, got, commands)
		}
		if len(Notes(n)) != 0 {
			t.Errorf("%s: %q", name, Notes(n))
		}
		n.Status.NodeInfo.KernelVersion = "5.15.146.1-microsoft-standard-WSL2"
		if len(Notes(n)) != 1 {
			t.Errorf("%s, in WSL2: %q", name, Notes(n))
		}
		commands[0] = ""
		if Configure(n)[0] == "" {
			t.Errorf("%s: who has the commands may change what all are told", name)
		}
	}
}

// The toolkit is told by its own ClusterPolicy of what that does not tell it yet: beside what stands
// there, or where nothing does.
func TestWhatTheToolkitIsToBeTold(t *testing.T) {
	policy := func(name string, env ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"toolkit": map[string]any{"env": env}}}}
	}
	of := func(name string) any { return map[string]any{"name": name, "value": "x"} }
	const socket, config = `{"name":"CONTAINERD_SOCKET","value":"/run/k0s/containerd.sock"}`, `{"name":"CONTAINERD_CONFIG","value":"/etc/k0s/containerd.d/nvidia.toml"}`
	const lacksSocket, lacksConfig = "CONTAINERD_SOCKET=/run/k0s/containerd.sock", "CONTAINERD_CONFIG=/etc/k0s/containerd.d/nvidia.toml"
	const merged, added = `kubectl patch clusterpolicy p --type=merge -p '{"spec":{"toolkit":{"env":[`, `kubectl patch clusterpolicy p --type=json -p '[`
	const add = `{"op":"add","path":"/spec/toolkit/env/-","value":`
	for name, k := range map[string]struct {
		kubelet  string
		policies []*unstructured.Unstructured
		want     string
	}{
		"nothing stands there":     {"+k0s", []*unstructured.Unstructured{policy("p")}, lacksSocket + " " + lacksConfig + "\n" + merged + socket + "," + config + `]}}}'`},
		"something else does":      {"+k0s", []*unstructured.Unstructured{policy("p", of("DEBUG"))}, lacksSocket + " " + lacksConfig + "\n" + added + add + socket + "}," + add + config + `}]'`},
		"one of two is told":       {"+k0s", []*unstructured.Unstructured{policy("p", of(SocketEnv))}, lacksConfig + "\n" + added + add + config + `}]'`},
		"another policy tells it":  {"+k0s", []*unstructured.Unstructured{policy("other", of(SocketEnv)), policy("p")}, lacksSocket + " " + lacksConfig + "\n" + merged + socket + "," + config + `]}}}'`},
		"what stands there is odd": {"+k0s", []*unstructured.Unstructured{policy("p", "odd")}, lacksSocket + " " + lacksConfig + "\n" + merged + socket + "," + config + `]}}}'`},
		"a socket alone":           {"+k3s", []*unstructured.Unstructured{policy("p")}, "CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock\n" + merged + `{"name":"CONTAINERD_SOCKET","value":"/run/k3s/containerd/containerd.sock"}` + `]}}}'`},
	} {
		n := &view.Node{Node: &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.31.1" + k.kubelet}}}}
		lacks, command := Of(n).Untold(k.policies, "p")
		if got := strings.Join(lacks, " ") + "\n" + command; got != k.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, k.want)
		}
	}
	n := &view.Node{Node: &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.31.1+k3s1"}}}}
	if lacks, _ := Of(n).Untold([]*unstructured.Unstructured{policy("p", of(SocketEnv))}, "p"); len(lacks) != 0 {
		t.Errorf("%q lacks where all is told", lacks)
	}
}

// A machine whose image lacks what its container runtime is to run is made again by who made it, and one whose
// runtime knows nothing of the toolkit's work has that started again by its distribution.
func TestWhatMendsAMachinesRuntime(t *testing.T) {
	for name, k := range map[string]struct {
		kubelet, runtime string
		labels           map[string]string
		image, takeIn    string
	}{
		"Karpenter's":      {"v1.31.1", "containerd://1.7", map[string]string{"karpenter.sh/nodepool": "p"}, "kubectl delete nodeclaim NAME", "chroot /host systemctl restart containerd"},
		"anybody's":        {"v1.31.1", "containerd://1.7", nil, "systemctl restart containerd", "chroot /host systemctl restart containerd"},
		"of CRI-O":         {"v1.31.1", "cri-o://1.30", nil, "systemctl restart crio", "chroot /host systemctl restart crio"},
		"k0s":              {"v1.31.1+k0s", "containerd://1.7.23", nil, "systemctl restart k0sworker  # k0scontroller on a controller that works, too", "chroot /host systemctl restart k0sworker  # k0scontroller on a controller that works, too"},
		"a distribution's": {"v1.31.1+k3s1", "containerd://1.7.23-k3s2", nil, "systemctl try-restart k3s k3s-agent", "chroot /host systemctl try-restart k3s k3s-agent"},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: k.labels}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: k.kubelet, ContainerRuntimeVersion: k.runtime}}}}
		steps, commands := OtherImage(n)
		if len(steps) != 2 || !strings.Contains(commands[len(commands)-1], k.image) {
			t.Errorf("%s: %q, %q", name, steps, commands)
		}
		steps, commands = TakeIn(n, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "toolkit"}})
		if len(steps) != 2 || commands[0] != "kubectl -n a logs toolkit --tail=50" || !strings.HasSuffix(commands[2], k.takeIn) {
			t.Errorf("%s: %q, %q", name, steps, commands)
		}
	}
}

// The image for GPUs is EKS's: of Amazon Linux elsewhere nothing is known, and where Karpenter or a node group made the machine, that
// one's image is shown.
func TestForGPUs(t *testing.T) {
	for name, k := range map[string]struct {
		image, kubelet string
		labels         map[string]string
		last           string
	}{
		"a node group's":          {"Amazon Linux 2", "v1.29.3-eks-ae9a62a", map[string]string{"eks.amazonaws.com/nodegroup": "gpu"}, "aws eks describe-nodegroup --cluster-name CLUSTER --nodegroup-name gpu --query 'nodegroup.[amiType,releaseVersion]'  # a group keeps its type: another image is another group"},
		"Karpenter's":             {"Amazon Linux 2023.6.20250317", "v1.31.5-eks-5d632ec", map[string]string{"karpenter.sh/nodepool": "gpu"}, "# once the class names another image: kubectl delete nodeclaim NAME  # Karpenter makes another while pods wait"},
		"Bottlerocket's":          {"Bottlerocket OS 1.20.0 (aws-k8s-1.29)", "v1.29.1-eks-61c0bbb", nil, "kubectl debug node/n -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi"},
		"Amazon Linux without it": {"Amazon Linux 2", "v1.29.3", nil, ""},
		"another system":          {"Ubuntu 22.04.4 LTS", "v1.29.3-eks-ae9a62a", nil, ""},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: k.labels}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: k.kubelet, OSImage: k.image}}}}
		steps, commands := ForGPUs(n)
		last := ""
		if len(commands) > 0 {
			last = commands[len(commands)-1]
		}
		if last != k.last || (steps == nil) != (k.last == "") {
			t.Errorf("%s: %q %q", name, steps, commands)
		}
	}
}
