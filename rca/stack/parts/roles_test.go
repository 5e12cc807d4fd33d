package parts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a DaemonSet is told by: what it runs, its labels, and its name last.
func TestRolesOfDaemonSets(t *testing.T) {
	named := func(name, image string) []corev1.Container { return []corev1.Container{{Name: name, Image: image}} }
	type label = map[string]string
	for name, k := range map[string]struct {
		set              string
		labels           label
		containers, init []corev1.Container
		want             Role
	}{
		"nothing of the stack":             {"app", nil, named("main", "nginx"), nil, ""},
		"the operator's driver":            {"x", label{"app.kubernetes.io/component": "nvidia-driver"}, nil, nil, Driver},
		"a driver's container":             {"x", nil, named("nvidia-driver-ctr", ""), nil, Driver},
		"its manager, of init":             {"x", nil, named("main", ""), named("k8s-driver-manager", ""), Driver},
		"GKE's installer by its label":     {"x", label{"k8s-app": "nvidia-driver-installer"}, nil, nil, Driver},
		"GKE's installer by its name":      {"nvidia-driver-installer-ubuntu", nil, nil, nil, Driver},
		"the toolkit by its label":         {"x", label{"app": "nvidia-container-toolkit-daemonset"}, nil, nil, Toolkit},
		"the toolkit by its container":     {"x", nil, named("nvidia-container-toolkit-ctr", ""), nil, Toolkit},
		"the validator":                    {"x", label{"app": "nvidia-operator-validator"}, nil, nil, Validator},
		"the validator by its container":   {"x", nil, named("nvidia-operator-validator", ""), nil, Validator},
		"the DRA driver":                   {"x", label{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}, nil, nil, DRADriver},
		"the DRA driver of before":         {"x", label{"nvidia-dra-driver-gpu-component": "kubelet-plugin"}, nil, nil, DRADriver},
		"the operator's DRA driver":        {"x", label{"app": "nvidia-dra-driver-kubelet-plugin"}, nil, nil, DRADriver},
		"the DRA driver by its container":  {"x", nil, named("compute-domains", ""), nil, DRADriver},
		"the DRA driver's controller":      {"x", label{"dra-driver-nvidia-gpu-component": "controller"}, nil, nil, ""},
		"the plugin by its container":      {"x", nil, named("nvidia-device-plugin-ctr", ""), nil, Plugin},
		"the plugin of GKE":                {"x", nil, named("nvidia-gpu-device-plugin", ""), nil, Plugin},
		"the plugin by its image":          {"x", nil, named("main", "nvcr.io/nvidia/k8s-device-plugin:v0.17"), nil, Plugin},
		"the plugin by a digest":           {"x", nil, named("main", "nvcr.io/nvidia/k8s-device-plugin@sha256:0"), nil, Plugin},
		"the plugin from a port":           {"x", nil, named("main", "mirror:5000/k8s-device-plugin"), nil, Plugin},
		"the plugin from nowhere":          {"x", nil, named("main", "k8s-device-plugin:v1"), nil, Plugin},
		"the plugin's image in init alone": {"x", nil, named("main", ""), named("main", "nvidia/k8s-device-plugin"), ""},
		"HAMi's":                           {"hami-device-plugin-x", nil, named("main", ""), nil, Plugin},
		"its config manager alone":         {"x", nil, named("config-manager", "nvidia/k8s-device-plugin"), nil, ""},
		"its MPS daemon":                   {"x", nil, named("mps-control-daemon-ctr", "nvidia/k8s-device-plugin"), nil, MPS},
		"GPU feature discovery":            {"x", nil, named("gpu-feature-discovery-ctr", "nvidia/k8s-device-plugin"), nil, Features},
		"another's plugin":                 {"x", nil, named("main", "intel/gpu-device-plugin"), nil, ""},
		"AMD's":                            {"x", nil, named("main", "docker.io/rocm/k8s-device-plugin:1.3"), nil, AMDPlugin},
		"AMD's from a mirror":              {"x", nil, named("main", "mirror/amd/k8s-device-plugin"), nil, AMDPlugin},
		"AMD's labeller by its tag":        {"x", nil, named("main", "rocm/k8s-device-plugin:labeller-latest"), nil, ""},
		"AMD's labeller by its name":       {"x", nil, named("main", "rocm/k8s-device-plugin-labeller:1"), nil, ""},
		"another of AMD's":                 {"x", nil, named("main", "rocm/device-metrics-exporter:1"), nil, ""},
		"Intel's by its container":         {"x", nil, named("intel-gpu-plugin", ""), nil, IntelPlugin},
		"Intel's by its image":             {"x", nil, named("main", "intel/intel-gpu-plugin:0.34"), nil, IntelPlugin},
		"the operator's for machines":      {"x", nil, named("nvidia-sandbox-device-plugin-ctr", ""), nil, MachinePlugin},
		"the plain one for machines":       {"x", nil, named("nvidia-kubevirt-gpu-dp-ctr", ""), nil, MachinePlugin},
		"that for machines by its image":   {"x", nil, named("main", "nvcr.io/nvidia/kubevirt-gpu-device-plugin:v1.2"), nil, MachinePlugin},
		"the validator for machines":       {"x", nil, nil, named("nvidia-sandbox-validator", ""), MachineValidator},
		"MIG manager":                      {"x", nil, named("nvidia-mig-manager", ""), nil, MIGManager},
		"node feature discovery":           {"x", nil, named("nfd-worker", ""), nil, Discovery},
		"node feature discovery by name":   {"a-node-feature-discovery-worker", nil, named("main", ""), nil, Discovery},
		"node feature discovery by image":  {"x", nil, named("worker", "registry.k8s.io/nfd/node-feature-discovery:v1"), nil, Discovery},
		"its master":                       {"x", nil, named("master", "registry.k8s.io/nfd/node-feature-discovery:v1"), nil, ""},
		"a worker of something else":       {"x", nil, named("worker", "nginx"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := roleOf(k.set, k.labels, &corev1.PodSpec{Containers: k.containers, InitContainers: k.init}); got != k.want {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
	for _, image := range []string{"rocm/k8s-device-plugin", "mirror/amd/k8s-device-plugin"} {
		if IsPlugin(corev1.Container{Image: image}) {
			t.Errorf("%s is taken for NVIDIA's", image)
		}
	}
}
