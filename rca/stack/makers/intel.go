package makers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
)

// intel is Intel (intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin). Its plugin
// announces a resource for each of the kernel's drivers: gpu.intel.com/i915 and gpu.intel.com/xe.
var intel = &Maker{
	Whose: "Intel's", Has: "has GPUs of Intel's", Plug: "Intel's device plugin", Plugin: parts.IntelPlugin,
	Announces: func(r corev1.ResourceName) bool { return strings.HasPrefix(string(r), "gpu.intel.com/") },
	Devices:   func(r corev1.ResourceName) bool { return r == "gpu.intel.com/i915" || r == "gpu.intel.com/xe" },
	// Of node feature discovery, with the rules of Intel's plugins or by the class of the device.
	Labels:  []string{"intel.feature.node.kubernetes.io/gpu", "feature.node.kubernetes.io/pci-0300_8086.present", "feature.node.kubernetes.io/pci-0380_8086.present"},
	Written: []string{"gpu.intel.com/"},
	Behind:  "the driver (i915 or xe) serves no card", Image: "intel-gpu-plugin", Driver: "i915 or xe", Shows: "ls /sys/class/drm /dev/dri",
	Steps: []string{"see that the machine's driver shows the card: /dev/dri is there", "install Intel's GPU plugin, or its operator with a GpuDevicePlugin that selects the node"},
	Install: func(node string) []string {
		return []string{"kubectl apply -k https://github.com/intel/intel-device-plugins-for-kubernetes/deployments/gpu_plugin", "kubectl get gpudeviceplugins -o yaml  # of Intel's operator: spec.nodeSelector has to be labels of " + node}
	},
}
