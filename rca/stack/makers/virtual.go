package makers

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// WorkloadKind is the label by which the GPU Operator gives a node's GPUs to containers or to virtual machines.
const WorkloadKind = "nvidia.com/gpu.workload.config"

// Virtual is NVIDIA's device plugin for virtual machines (NVIDIA/kubevirt-gpu-device-plugin, the
// GPU Operator's sandbox device plugin): of whole GPUs that are bound to vfio, and of vGPUs.
var Virtual = &Maker{
	Whose: "NVIDIA's for virtual machines", Has: "has GPUs for virtual machines", Plug: "NVIDIA's device plugin for virtual machines", Plugin: parts.MachinePlugin,
	Announces: ForMachines, Before: parts.MachineValidator, Awaits: map[string]parts.Role{"vgpu-devices-validation": parts.VGPUDevices},
	Labels: []string{WorkloadKind + "=vm-passthrough", WorkloadKind + "=vm-vgpu"}, Signed: true,
	Behind: "no card is bound to vfio-pci, or no vGPU of that type is made", Image: "kubevirt-gpu-device-plugin", Driver: "vfio-pci, or NVIDIA's vGPU manager",
	Shows: "sh -c 'lspci -nnk -d 10de:; ls /sys/class/mdev_bus'  # Kernel driver in use: vfio-pci for passthrough",
	Steps: []string{"have the GPU Operator install it: sandboxWorkloads.enabled=true"},
	Install: func(string) []string {
		return []string{`kubectl patch clusterpolicy cluster-policy --type=merge -p '{"spec":{"sandboxWorkloads":{"enabled":true},"sandboxDevicePlugin":{"enabled":true}}}'`}
	},
}

// cardName is how that plugin names a resource: the card's name in the list of PCI devices with _
// for what a name may not have, the type of a vGPU, or the id of a device that the list lacks.
var cardName = regexp.MustCompile(`^nvidia\.com/([A-Z][A-Za-z0-9_.-]*|[0-9a-f]{4}|pgpu)$`)

// ForMachines says whether a resource is a card by its name, or a vGPU.
func ForMachines(r corev1.ResourceName) bool {
	return !view.IsGPU(r) && cardName.MatchString(string(r))
}
