package stack

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// A machine with Talos has its driver in its image: the operator's is kept off, of that machine alone where others
// need it.
func TestADriverOnTalos(t *testing.T) {
	for name, k := range map[string]struct {
		other bool
		want  string
	}{
		"alone":               {false, `'{"spec":{"driver":{"enabled":false}}}'`},
		"beside another kind": {true, "kubectl label node n nvidia.com/gpu.deploy.driver=false --overwrite"},
	} {
		l := newLab()
		l.gpuNode("n").Status.NodeInfo.OSImage = "Talos (v1.6.5)"
		if k.other {
			l.gpuNode("m").Status.NodeInfo.OSImage = "Ubuntu 22.04.5 LTS"
		}
		l.pod(parts.Driver, "n", crashes("no package for 6.1.78-talos"))
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != diagnosis.DriverNotReady || !strings.HasSuffix(f.Says, "it runs Talos, whose driver is an extension of the machine's image, and not to be installed by the GPU Operator") {
			t.Fatalf("%s: %+v", name, f)
		}
		if m := f.Mends[0]; len(f.Mends) != 1 || !m.Reboots || !strings.Contains(strings.Join(m.Commands, "\n"), k.want) {
			t.Errorf("%s: %+v", name, f.Mends)
		}
	}
}

// Where the image has the driver, and the operator's validator does not see it, the machine is not said to have none.
func TestADriverThatTheValidatorDoesNotSee(t *testing.T) {
	for extension, want := range map[string]string{"": "has no driver that the GPU Operator's validation accepts: ", "extensions.talos.dev/nvidia-open-gpu-kernel-modules": "has its driver in the image of Talos (label extensions.talos.dev/nvidia-open-gpu-kernel-modules=550)"} {
		l := newLab()
		n := l.gpuNode("n")
		n.Status.NodeInfo.OSImage, n.Labels[DeployDriver] = "Talos (v1.7.1)", "pre-installed"
		if extension != "" {
			n.Labels[extension] = "550"
		}
		l.pod(parts.Toolkit, "n", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "driver-validation", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}}}}
		})
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != diagnosis.DriverNotReady || f.Certainty != diagnosis.Likely || !strings.HasPrefix(f.Says, want) {
			t.Fatalf("%q: %+v", extension, f)
		}
		if alone := strings.Contains(strings.Join(f.Mends[0].Commands, "\n"), "nvidia.com/gpu.deploy.operands=false"); alone != (extension != "") {
			t.Errorf("%q: %+v", extension, f.Mends)
		}
	}
}
