package homes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// Each distribution's containerd is where its own guide says; another runtime has none of that.
func TestHomes(t *testing.T) {
	for name, k := range map[string]struct {
		kubelet, runtime string
		labels           map[string]string
		home, commands   string
	}{
		"k3s":               {"v1.31.1+k3s1", "containerd://1.7", nil, "k3s /run/k3s/containerd/containerd.sock ", "systemctl restart k3s k3s-agent"},
		"RKE2":              {"v1.31.1+rke2r1", "containerd://1.7", nil, "RKE2 /run/k3s/containerd/containerd.sock ", "systemctl restart rke2-server rke2-agent"},
		"k0s":               {"v1.31.1+k0s", "containerd://1.7", nil, "k0s /run/k0s/containerd.sock /etc/k0s/containerd.d/nvidia.toml", "nvidia-ctk runtime configure --runtime=containerd --config=/etc/k0s/containerd.d/nvidia.toml --set-as-default && systemctl restart k0sworker"},
		"MicroK8s":          {"v1.31.1", "containerd://1.6", map[string]string{"microk8s.io/cluster": "true"}, "MicroK8s /var/snap/microk8s/common/run/containerd.sock /var/snap/microk8s/current/args/containerd-template.toml", "nvidia-ctk runtime configure --runtime=containerd --config=/var/snap/microk8s/current/args/containerd-template.toml --set-as-default && snap restart microk8s.daemon-containerd"},
		"not MicroK8s":      {"v1.31.1", "containerd://1.6", map[string]string{"microk8s.io/cluster": "false"}, "", "nvidia-ctk runtime configure --runtime=containerd --set-as-default && systemctl restart containerd"},
		"k3s of Docker":     {"v1.31.1+k3s1", "docker://24", nil, "", "nvidia-ctk runtime configure --runtime=docker --set-as-default && systemctl restart docker"},
		"the runtime's own": {"v1.31.1", "cri-o://1.30", nil, "", "nvidia-ctk runtime configure --runtime=crio --set-as-default && systemctl restart crio"},
		"nothing is told":   {"v1.31.1+k3s1", "", nil, "k3s /run/k3s/containerd/containerd.sock ", "systemctl restart k3s k3s-agent"},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: k.labels}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: k.kubelet, ContainerRuntimeVersion: k.runtime}}}}
		got := ""
		if h := Of(n); h != nil {
			got = fmt.Sprintf("%s %s %s", h.Name, h.Socket, h.Config)
		}
		commands := Configure(n)
		if last := commands[len(commands)-1]; got != k.home || last != k.commands || !strings.HasPrefix(commands[0], "# on the machine:") {
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
