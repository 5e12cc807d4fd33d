package makers

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
)

// amd is AMD (ROCm/k8s-device-plugin).
var amd = &Maker{
	Whose: "AMD's", Has: "has GPUs of AMD's", Plug: "AMD's device plugin", Plugin: parts.AMDPlugin,
	Announces: func(r corev1.ResourceName) bool { return strings.HasPrefix(string(r), "amd.com/") }, Devices: isAMDGPU,
	// Of node feature discovery, with the rules of AMD's operator or by the class of the device
	// (display, 3D, accelerator).
	Labels: []string{
		"feature.node.kubernetes.io/amd-gpu", "feature.node.kubernetes.io/amd-vgpu", "feature.node.kubernetes.io/pci-1002.present",
		"feature.node.kubernetes.io/pci-0300_1002.present", "feature.node.kubernetes.io/pci-0380_1002.present", "feature.node.kubernetes.io/pci-1200_1002.present",
	},
	Written:  []string{"amd.com/gpu.", "beta.amd.com/gpu."},
	Machines: regexp.MustCompile(`^g4ad\.|^Standard_NV\d+as_v4|^Standard_.*(_V710_|_MI\d+)|\.GPU\.MI\d+`), // EC2's, Azure's, Oracle's
	Parted:   "amd.com/compute-memory-partition",
	Behind:   "the driver (amdgpu) serves no card", Image: "rocm/k8s-device-plugin", Driver: "amdgpu", Shows: "ls /sys/module/amdgpu /dev/kfd /dev/dri",
	Steps: []string{"see that the machine's driver shows the card: /dev/kfd is there", "install AMD's device plugin, or its GPU operator with a DeviceConfig that selects the node"},
	Install: func(node string) []string {
		return []string{"kubectl create -f https://raw.githubusercontent.com/ROCm/k8s-device-plugin/master/k8s-ds-amdgpu-dp.yaml", "kubectl get deviceconfigs -A -o yaml  # of AMD's GPU operator: spec.selector has to be a label of " + node}
	},
}

// amdPart is the name of a part of a GPU, or of a whole one, where the plugin names GPUs by how
// they are parted (its -resource_naming_strategy=mixed).
var amdPart = regexp.MustCompile(`^amd\.com/[sdtqc]px_nps[0-9]+$`)

func isAMDGPU(r corev1.ResourceName) bool {
	return r == "amd.com/gpu" || amdPart.MatchString(string(r))
}
