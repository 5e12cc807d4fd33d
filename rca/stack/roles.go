package stack

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// role is what a DaemonSet does in the stack.
type role string

const (
	discovery role = "node feature discovery"
	driver    role = "driver"
	toolkit   role = "container toolkit"
	validator role = "validator"
	plugin    role = "device plugin"
	draPlugin role = "DRA driver"
	mps       role = "MPS daemon"
	features  role = "GPU feature discovery"
	migParts  role = "MIG manager"
)

// pluginContainers are the device plugin's containers, by who ships it: the GPU Operator,
// its own chart and static manifest, GKE, HAMi, Volcano.
var pluginContainers = []string{view.PluginName, view.PluginName + "-ctr", view.GKEPluginName, "volcano-device-plugin"}

// besidePlugin are containers of the plugin's image that are something else.
var besidePlugin = []string{"config-manager", "gpu-feature-discovery", view.MPSName}

// roleOf tells what pods of such a template do, by their containers, images and labels;
// empty for what is no part of the stack.
func roleOf(name string, labels map[string]string, spec *corev1.PodSpec) role {
	has := func(is func(corev1.Container) bool) bool {
		return slices.ContainsFunc(spec.Containers, is) || slices.ContainsFunc(spec.InitContainers, is)
	}
	named := func(names ...string) func(corev1.Container) bool {
		return func(c corev1.Container) bool { return slices.Contains(names, c.Name) }
	}
	switch app := labels["app"]; {
	case labels["app.kubernetes.io/component"] == "nvidia-driver", has(named("nvidia-driver-ctr", "k8s-driver-manager")), labels["k8s-app"] == "nvidia-driver-installer", strings.HasPrefix(name, "nvidia-driver-installer"):
		return driver
	case app == "nvidia-container-toolkit-daemonset", has(named("nvidia-container-toolkit-ctr")):
		return toolkit
	case app == "nvidia-operator-validator", has(named(validatorName)):
		return validator
	case labels["dra-driver-nvidia-gpu-component"] == "kubelet-plugin", labels["nvidia-dra-driver-gpu-component"] == "kubelet-plugin", app == "nvidia-dra-driver-kubelet-plugin", has(named("compute-domains")):
		return draPlugin
	case makerPlugin(spec.Containers) != "":
		return makerPlugin(spec.Containers)
	case slices.ContainsFunc(spec.Containers, isPlugin), strings.HasPrefix(name, "hami-device-plugin"):
		return plugin
	case has(named(view.MIGManagerName)):
		return migParts
	case has(named(machineValidatorName)):
		return machineValidator
	case has(func(c corev1.Container) bool { return strings.Contains(c.Name, view.MPSName) }):
		return mps
	case has(func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "gpu-feature-discovery") }):
		return features
	case has(named("nfd-worker")), strings.HasSuffix(name, "node-feature-discovery-worker"), has(func(c corev1.Container) bool {
		return strings.Contains(c.Image, "node-feature-discovery") && c.Name == "worker"
	}):
		return discovery
	}
	return ""
}

const validatorName = "nvidia-operator-validator"

// isPlugin says whether a container is the device plugin: by its name, else by its image.
func isPlugin(c corev1.Container) bool {
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

func roleOfSet(ds *appsv1.DaemonSet) role {
	return roleOf(ds.Name, ds.Spec.Template.Labels, &ds.Spec.Template.Spec)
}
