package stack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

const card = corev1.ResourceName("nvidia.com/GA102GL_A10")

// machines installs the parts for virtual machines, each for nodes with its label.
func (l *lab) machines() {
	for r, part := range map[parts.Role][2]string{parts.MachinePlugin: {"nvidia-sandbox-device-plugin-ctr", "sandbox-device-plugin"}, parts.MachineValidator: {"nvidia-sandbox-validator", "sandbox-validator"}} {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: part[1], UID: "sandbox", CreationTimestamp: metav1.NewTime(noon.Add(-48 * time.Hour))}}
		ds.Spec.Template.Spec.Containers, ds.Spec.Template.Spec.NodeSelector = []corev1.Container{{Name: part[0]}}, map[string]string{parts.Deploys + part[1]: "true"}
		l.sets[r], l.DaemonSets = ds, append(l.DaemonSets, ds)
	}
}

// Why a node that gives its GPUs to virtual machines offers none of them: its own plugin is looked
// at, and never that for containers. What others announce by such a name is none of it.
func TestGPUsForVirtualMachines(t *testing.T) {
	const label = parts.Deploys + "sandbox-device-plugin"
	for name, k := range map[string]struct {
		edit     func(l *lab, n *corev1.Node)
		resource corev1.ResourceName
		want     string
	}{
		"it crashes": {func(l *lab, n *corev1.Node) {
			n.Labels[label], n.Labels[parts.Deploys+"sandbox-validator"] = "true", "true"
			l.pod(parts.MachinePlugin, "n", crashes("GLIBC"))
		}, card, "failed DevicePluginDown proven: has GPUs for virtual machines and offers no nvidia.com/GA102GL_A10: NVIDIA's device plugin for virtual machines fails at nvidia-sandbox-device-plugin-ctr CrashLoopBackOff (9 restarts; last exit 1: GLIBC) | see why NVIDIA's device plugin for virtual machines announces nothing on n"},
		"it waits": {func(l *lab, n *corev1.Node) {
			n.Labels[label], n.Labels[parts.Deploys+"sandbox-validator"] = "true", "true"
			l.pod(parts.MachinePlugin, "n", func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "vfio-pci-validation", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}}}}
			})
		}, card, "failed DevicePluginDown likely: has GPUs for virtual machines and offers no nvidia.com/GA102GL_A10: NVIDIA's device plugin for virtual machines waits in vfio-pci-validation running | see why NVIDIA's device plugin for virtual machines announces nothing on n"},
		"it runs": {func(l *lab, n *corev1.Node) {
			n.Labels[label], n.Labels[parts.Deploys+"sandbox-validator"] = "true", "true"
			l.pod(parts.MachinePlugin, "n", nil)
		}, card, "failed DevicePluginDown likely: has GPUs for virtual machines and offers no nvidia.com/GA102GL_A10: NVIDIA's device plugin for virtual machines runs there and announces none, as where no card is bound to vfio-pci, or no vGPU of that type is made | see why NVIDIA's device plugin for virtual machines announces nothing on n"},
		"labels keep it off, and what it waits for": {func(*lab, *corev1.Node) {}, card, "kept off GPUStackNotOnNode proven: has GPUs for virtual machines and offers no nvidia.com/GA102GL_A10: gpu-operator/sandbox-device-plugin does not run there: it selects nodes by label nvidia.com/gpu.deploy.sandbox-device-plugin=true, which is absent | label n nvidia.com/gpu.deploy.sandbox-validator=true; label n nvidia.com/gpu.deploy.sandbox-device-plugin=true"},
		"a label keeps it off": {func(_ *lab, n *corev1.Node) {
			n.Labels[label], n.Labels[parts.Deploys+"sandbox-validator"] = "paused-for-vgpu-change", "true"
		}, card, `kept off GPUStackNotOnNode proven: has GPUs for virtual machines and offers no nvidia.com/GA102GL_A10: gpu-operator/sandbox-device-plugin does not run there: it selects nodes by label nvidia.com/gpu.deploy.sandbox-device-plugin=true, here it is "paused-for-vgpu-change" | label n nvidia.com/gpu.deploy.sandbox-device-plugin=true`},
		"not installed": {func(l *lab, _ *corev1.Node) { l.DaemonSets = l.DaemonSets[:4] }, card, "missing GPUStackMissing proven: has GPUs for virtual machines, and no device plugin for virtual machines is installed that announces nvidia.com/GA102GL_A10 | install NVIDIA's device plugin for virtual machines, which announces the GPUs of n"},
		"it offers some": {func(_ *lab, n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{card: resource.MustParse("1")}
		}, card, ""},
		"of a network card": {func(*lab, *corev1.Node) {}, "nvidia.com/hostdev", ""},
		"of a GPU for pods": {func(*lab, *corev1.Node) {}, view.WholeGPU, ""},
		"its manager of vGPUs crashes": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.MachinePlugin, "n", nil)
			vgpuManager(l, crashes("no luck"))
		}, card, "failed DriverNotReady proven: has GPUs for virtual machines and offers no " + string(card) + ": its vGPU manager fails at nvidia-vgpu-manager-ctr CrashLoopBackOff (9 restarts; last exit 1: no luck) | see why NVIDIA's vGPU manager fails on n"},
		"its manager of vGPUs runs": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.MachinePlugin, "n", nil)
			vgpuManager(l, nil)
		}, card, "failed DevicePluginDown likely: has GPUs for virtual machines and offers no " + string(card) + ": NVIDIA's device plugin for virtual machines runs there and announces none, as where no card is bound to vfio-pci, or no vGPU of that type is made | see why NVIDIA's device plugin for virtual machines announces nothing on n"},
		"for containers": {func(_ *lab, n *corev1.Node) { n.Labels[workloadKind] = "container" }, card, ""},
		"announced by another": {func(_ *lab, n *corev1.Node) {
			delete(n.Labels, workloadKind)
			n.Status.Capacity = corev1.ResourceList{card: resource.MustParse("0")}
		}, card, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels[workloadKind] = "vm-passthrough"
			l.machines()
			k.edit(l, n)
			w := view.New(l.State)
			got := ""
			if f := Of(w).OfMaker(w.Nodes["n"], k.resource); f != nil {
				got = fmt.Sprintf("%s %s %s: %s", f.State, f.Cause, f.Certainty, f.Says)
				for _, m := range f.Mends {
					got += " | " + m.Title
					if m.Kind != diagnosis.RepairDeviceStack || m.Unproven == "" || len(m.Commands) == 0 {
						t.Errorf("%+v", m)
					}
				}
			}
			if got != k.want {
				t.Errorf("%s\nwant\n%s", got, k.want)
			}
		})
	}
}

// A node whose GPUs go to containers could give them to the virtual machine that asks for such a card, where nobody
// announces it. Its users lose them then.
func TestGPUsThatContainersHave(t *testing.T) {
	sandbox := func(l *lab) {
		l.policy(map[string]any{"sandboxWorkloads": map[string]any{"enabled": true, "defaultWorkload": "container"}})
	}
	for name, k := range map[string]struct {
		edit     func(l *lab, n *corev1.Node)
		resource corev1.ResourceName
		want     string
		command  string
	}{
		"by the default":    {func(l *lab, _ *corev1.Node) { sandbox(l) }, card, "it has no label nvidia.com/gpu.workload.config, and the GPU Operator's default is container", "kubectl label node n nvidia.com/gpu.workload.config=vm-passthrough --overwrite"},
		"by its label":      {func(l *lab, n *corev1.Node) { sandbox(l); n.Labels[workloadKind] = ofContainers }, card, "label nvidia.com/gpu.workload.config=container", "kubectl label node n nvidia.com/gpu.workload.config=vm-passthrough --overwrite"},
		"of a vGPU":         {func(l *lab, _ *corev1.Node) { sandbox(l) }, "nvidia.com/NVIDIA_A10-12Q", "the GPU Operator's default is container", "kubectl label node n nvidia.com/gpu.workload.config=vm-vgpu --overwrite"},
		"none are served":   {func(l *lab, _ *corev1.Node) { l.policy(map[string]any{}) }, card, "the GPU Operator is not told to serve any", `kubectl patch clusterpolicy cluster-policy --type=merge -p '{"spec":{"sandboxWorkloads":{"enabled":true}}}'`},
		"another card":      {func(l *lab, n *corev1.Node) { sandbox(l); n.Labels["nvidia.com/gpu.product"] = "Tesla-T4" }, card, "", ""},
		"no operator":       {func(*lab, *corev1.Node) {}, card, "", ""},
		"of a GPU for pods": {func(l *lab, _ *corev1.Node) { sandbox(l) }, view.WholeGPU, "", ""},
		"a node has it": {func(l *lab, _ *corev1.Node) {
			sandbox(l)
			l.gpuNode("m").Status.Capacity = corev1.ResourceList{card: *quantity(1)}
		}, card, "", ""},
		"none of the operator's": {func(l *lab, n *corev1.Node) { sandbox(l); n.Labels = map[string]string{view.GPULabels[0]: "true"} }, card, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels["nvidia.com/gpu.product"] = "NVIDIA-A10"
			l.user()
			k.edit(l, n)
			w := view.New(l.State)
			f := Of(w).OfMaker(w.Nodes["n"], k.resource)
			if (f != nil) != (k.want != "") {
				t.Fatalf("%+v", f)
			}
			if f == nil {
				return
			}
			if f.Cause != diagnosis.GPUStackNotOnNode || f.Certainty != diagnosis.Likely || !strings.HasPrefix(f.Says, "gives its GPUs to containers, and none to virtual machines, which ask "+string(k.resource)+": ") || !strings.HasSuffix(f.Says, k.want) {
				t.Errorf("%+v", f)
			}
			if m := f.Mends[0]; !strings.Contains(strings.Join(m.Commands, "\n"), k.command) || m.Risk != diagnosis.HighRisk || len(m.Stops) != 1 || m.Unproven == "" {
				t.Errorf("%+v", m)
			}
		})
	}
}

// vgpuManager adds a pod of the vGPU manager to the node.
func vgpuManager(l *lab, edit func(*corev1.Pod)) {
	ds := l.sets[parts.Driver].DeepCopy()
	ds.Name, ds.UID, ds.Spec.Template.Spec.Containers = "vgpu", "vgpu", []corev1.Container{{Name: "nvidia-vgpu-manager-ctr"}}
	l.DaemonSets, l.sets[parts.Driver] = append(l.DaemonSets, ds), ds
	l.pod(parts.Driver, "n", edit)
}
