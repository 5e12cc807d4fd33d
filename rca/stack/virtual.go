package stack

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// virtual is NVIDIA's device plugin for virtual machines (NVIDIA/kubevirt-gpu-device-plugin, the
// GPU Operator's sandbox device plugin): of whole GPUs that are bound to vfio, and of vGPUs.
var virtual = &maker{
	whose: "NVIDIA's for virtual machines", has: "has GPUs for virtual machines", plug: "NVIDIA's device plugin for virtual machines", plugin: parts.MachinePlugin,
	announces: forMachines, before: parts.MachineValidator,
	labels: []string{workloadKind + "=vm-passthrough", workloadKind + "=vm-vgpu"}, signed: true,
	behind: "no card is bound to vfio-pci, or no vGPU of that type is made", image: "kubevirt-gpu-device-plugin", driver: "vfio-pci, or NVIDIA's vGPU manager",
	shows: "sh -c 'lspci -nnk -d 10de:; ls /sys/class/mdev_bus'  # Kernel driver in use: vfio-pci for passthrough",
	steps: []string{"have the GPU Operator install it: sandboxWorkloads.enabled=true"},
	install: func(string) []string {
		return []string{`kubectl patch clusterpolicy cluster-policy --type=merge -p '{"spec":{"sandboxWorkloads":{"enabled":true},"sandboxDevicePlugin":{"enabled":true}}}'`}
	},
}

// sandboxed: the GPU Operator gives the node's GPUs to virtual machines, by the node's label or,
// where it has none, by the policy's default (gpu-operator controllers/state_manager.go). Who holds
// them for machines loses them when they are given back.
func (s *Stack) sandboxed(n *view.Node) *Finding {
	kind, fact, ref, claims := n.Labels[workloadKind], "label "+workloadKind+"=", n.Ref(), n.Labelled(workloadKind)
	says := "gives its GPUs to virtual machines: label " + workloadKind + "=" + kind
	if kind == "" {
		if n.Labels[deployPlugin] != "" || !knownGPU(n) {
			return nil
		}
		kind, fact, ref, claims = s.workload, "spec.sandboxWorkloads.defaultWorkload is ", "ClusterPolicy/"+s.policy, []diagnosis.Claim{diagnosis.That("spec.sandboxWorkloads.defaultWorkload", "", diagnosis.Is, s.workload)}
		says = fmt.Sprintf("gives its GPUs to virtual machines: it has no label %s, and the GPU Operator's default is %s", workloadKind, kind)
	}
	if !strings.HasPrefix(kind, otherWorkload) {
		return nil
	}
	f := s.finding(Labels, KeptOff, diagnosis.GPUStackNotOnNode, says, ref, fact+kind, claims...)
	m := relabel(n, workloadKind, "container", "it is given to containers")
	if held := holding(n, forMachines); len(held) > 0 {
		m.Risk = diagnosis.HighRisk
		m.Steps = append([]string{"see that " + view.PodList(held) + " may end first: " + holdText(len(held)) + " GPUs of the node for virtual machines, which are taken away"}, m.Steps...)
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "GPUs are held there for virtual machines by "+view.PodList(held), heldBy(n, held)...))
	}
	f.Mends = []Mend{m}
	return f
}

// cardName is how that plugin names a resource: the card's name in the list of PCI devices with _
// for what a name may not have, the type of a vGPU, or the id of a device that the list lacks.
var cardName = regexp.MustCompile(`^nvidia\.com/([A-Z][A-Za-z0-9_.-]*|[0-9a-f]{4}|pgpu)$`)

func forMachines(r corev1.ResourceName) bool {
	return !view.IsGPU(r) && cardName.MatchString(string(r))
}
