package parts

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// Role is what a DaemonSet does in the stack, for people.
type Role string

// The roles, NVIDIA's for containers first: those beside them are what other makers, and virtual
// machines, have in their place.
const (
	Discovery        Role = "node feature discovery"
	Driver           Role = "driver"
	Toolkit          Role = "container toolkit"
	Validator        Role = "validator"
	Plugin           Role = "device plugin"
	DRADriver        Role = "DRA driver"
	MPS              Role = "MPS daemon"
	Features         Role = "GPU feature discovery"
	MIGManager       Role = "MIG manager"
	AMDPlugin        Role = "device plugin of AMD's"
	IntelPlugin      Role = "device plugin of Intel's"
	SharePlugin      Role = "device plugin of gpushare"
	VcudaPlugin      Role = "gpu-manager"
	NeuronPlugin     Role = "device plugin of AWS Neuron's"
	GaudiPlugin      Role = "device plugin of Gaudi's"
	MachinePlugin    Role = "device plugin for virtual machines"
	VGPUDevices      Role = "vGPU device manager"
	MachineValidator Role = "validator for virtual machines" // writes on the node what that plugin waits for
)

// pluginContainers are the device plugin's containers, by who ships it: the GPU Operator,
// its own chart and static manifest, GKE, HAMi, Volcano.
var pluginContainers = []string{view.PluginName, view.PluginName + "-ctr", view.GKEPluginName, "volcano-device-plugin"}

// besidePlugin are containers of the plugin's image that are something else.
var besidePlugin = []string{"config-manager", "gpu-feature-discovery", view.MPSName}

// roleOf tells what pods of such a template do, by their containers, images and labels;
// empty for what is no part of the stack.
func roleOf(name string, labels map[string]string, spec *corev1.PodSpec) Role {
	has := func(is func(corev1.Container) bool) bool {
		return slices.ContainsFunc(spec.Containers, is) || slices.ContainsFunc(spec.InitContainers, is)
	}
	named := func(names ...string) func(corev1.Container) bool {
		return func(c corev1.Container) bool { return slices.Contains(names, c.Name) }
	}
	image := func(parts ...string) func(corev1.Container) bool {
		return func(c corev1.Container) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(c.Image, part) })
		}
	}
	switch app := labels["app"]; {
	case labels["app.kubernetes.io/component"] == "nvidia-driver", has(named("nvidia-driver-ctr", "k8s-driver-manager", "nvidia-vgpu-manager-ctr")), labels["k8s-app"] == "nvidia-driver-installer", strings.HasPrefix(name, "nvidia-driver-installer"):
		return Driver
	case app == "nvidia-container-toolkit-daemonset", has(named("nvidia-container-toolkit-ctr")):
		return Toolkit
	case app == "nvidia-operator-validator", has(named("nvidia-operator-validator")):
		return Validator
	case labels["dra-driver-nvidia-gpu-component"] == "kubelet-plugin", labels["nvidia-dra-driver-gpu-component"] == "kubelet-plugin", app == "nvidia-dra-driver-kubelet-plugin", has(named("compute-domains")):
		return DRADriver
	case slices.ContainsFunc(spec.Containers, isAMDPlugin):
		return AMDPlugin
	case slices.ContainsFunc(spec.Containers, isIntelPlugin):
		return IntelPlugin
	case has(image("gpushare-plugin")):
		return SharePlugin
	case has(image("/gpu-manager")):
		return VcudaPlugin
	case has(image("neuron-device-plugin")):
		return NeuronPlugin
	case has(image("habana-k8s-device-plugin", "docker-k8s-device-plugin", "habanalabs-device-plugin")):
		return GaudiPlugin
	case slices.ContainsFunc(spec.Containers, isMachinePlugin):
		return MachinePlugin
	case slices.ContainsFunc(spec.Containers, IsPlugin), strings.HasPrefix(name, view.HAMiPluginName):
		return Plugin
	case has(named(view.MIGManagerName)):
		return MIGManager
	case has(named("nvidia-vgpu-device-manager")):
		return VGPUDevices
	case has(named("nvidia-sandbox-validator")):
		return MachineValidator
	case has(func(c corev1.Container) bool { return strings.Contains(c.Name, view.MPSName) }):
		return MPS
	case has(func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "gpu-feature-discovery") }):
		return Features
	case has(named("nfd-worker")), name == "nfd-worker", app == "nfd-worker", strings.HasSuffix(name, "node-feature-discovery-worker"), has(func(c corev1.Container) bool {
		return strings.Contains(c.Image, "node-feature-discovery") && c.Name == "worker"
	}):
		return Discovery
	}
	return ""
}

// IsPlugin says whether a container is NVIDIA's device plugin: by its name, else by its image.
func IsPlugin(c corev1.Container) bool {
	if slices.Contains(pluginContainers, c.Name) {
		return true
	}
	image, _, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
	image, _, _ = strings.Cut(image, "@")
	if image != "k8s-device-plugin" && image != view.GKEPluginName || strings.Contains(c.Image, "amd") || strings.Contains(c.Image, "rocm") {
		return false
	}
	return !slices.ContainsFunc(besidePlugin, func(other string) bool { return strings.Contains(c.Name, other) })
}

// isAMDPlugin tells AMD's (ROCm/k8s-device-plugin) by its image; its labeller has another name, or a
// tag of the same.
func isAMDPlugin(c corev1.Container) bool {
	image := c.Image[strings.LastIndex(c.Image, "/")+1:]
	ofAMD := strings.Contains(c.Image, "rocm") || strings.Contains(c.Image, "amd")
	return ofAMD && strings.HasPrefix(image, "k8s-device-plugin") && !strings.Contains(image, "labeller")
}

// isIntelPlugin tells Intel's (intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin) by its
// container, which its manifest and its operator name alike, or by its image.
func isIntelPlugin(c corev1.Container) bool {
	return c.Name == "intel-gpu-plugin" || strings.Contains(c.Image, "intel-gpu-plugin")
}

// isMachinePlugin tells NVIDIA's for virtual machines (NVIDIA/kubevirt-gpu-device-plugin, the GPU
// Operator's sandbox device plugin).
func isMachinePlugin(c corev1.Container) bool {
	return c.Name == "nvidia-sandbox-device-plugin-ctr" || c.Name == "nvidia-kubevirt-gpu-dp-ctr" || strings.Contains(c.Image, "kubevirt-gpu-device-plugin")
}
