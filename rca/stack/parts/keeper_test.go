package parts

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// What an operator makes is changed where it is made from: in the DaemonSet it would be put back.
func TestWhatAnOperatorMakesIsChangedInItsObject(t *testing.T) {
	yes := true
	for name, k := range map[string]struct {
		role             Role
		group, kind, own string
		want             string
	}{
		"AMD's": {AMDPlugin, "amd.com/v1alpha1", "DeviceConfig", "default",
			`kubectl -n s patch deviceconfig.amd.com default --type=merge -p '{"spec":{"devicePlugin":{"devicePluginTolerations":[{"key":"amd.com/gpu","operator":"Exists","effect":"NoSchedule"}]}}}'`},
		"AMD's labeller": {"", "amd.com/v1alpha1", "DeviceConfig", "default",
			`kubectl -n s edit deviceconfig.amd.com default  # tolerations: [{"key":"amd.com/gpu","operator":"Exists","effect":"NoSchedule"}]`},
		"Intel's": {IntelPlugin, "deviceplugin.intel.com/v1", "GpuDevicePlugin", "gpus",
			`kubectl -n s patch gpudeviceplugin.deviceplugin.intel.com gpus --type=merge -p '{"spec":{"tolerations":[{"key":"amd.com/gpu","operator":"Exists","effect":"NoSchedule"}]}}'`},
		"a person's": {AMDPlugin, "", "", "",
			`kubectl -n s patch daemonset d --type=merge -p '{"spec":{"template":{"spec":{"tolerations":[{"key":"amd.com/gpu","operator":"Exists","effect":"NoSchedule"}]}}}}'`},
	} {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "d"}}
		if k.kind != "" {
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: k.group, Kind: k.kind, Name: k.own, Controller: &yes}}
		}
		s := Asked(d)
		s.Role = k.role
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "amd.com/gpu", Effect: corev1.TaintEffectNoSchedule}}}}}
		if w := s.Let(n, s.Misses(n), "", nil); strings.Join(w.Commands, "|") != k.want {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(w.Commands, "|"), k.want)
		}
	}
}

// AMD's operator is to choose a virtual function by its own label, which node feature discovery writes; any other label a person may.
func TestVirtualFunctionsAreChosenByTheirLabel(t *testing.T) {
	const patch = `kubectl -n s get deviceconfig.amd.com default -o json | jq '{apiVersion, kind, metadata: {namespace: .metadata.namespace, name: "default-vgpu"}, spec: (.spec + {selector: {"feature.node.kubernetes.io/amd-vgpu": "true"}})}' | kubectl apply -f -  # the one that is there goes on serving whole cards`
	yes := true
	for name, k := range map[string]struct {
		kind, selects, has string
		want               string
	}{
		"a virtual function":       {"DeviceConfig", amdCard, amdPart, patch},
		"of another operator":      {"Other", amdCard, amdPart, "kubectl label node n " + amdCard + "=true --overwrite"},
		"a label of somebody's":    {"DeviceConfig", "team", amdPart, "kubectl label node n team=true --overwrite"},
		"no label of a function's": {"DeviceConfig", amdCard, "other", "kubectl label node n " + amdCard + "=true --overwrite"},
	} {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "d", OwnerReferences: []metav1.OwnerReference{{APIVersion: "amd.com/v1alpha1", Kind: k.kind, Name: "default", Controller: &yes}}}}
		d.Spec.Template.Spec.NodeSelector = map[string]string{k.selects: "true"}
		s, n := Asked(d), &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{k.has: "true"}}}}
		if w := s.Let(n, s.Misses(n), "", nil); strings.Join(w.Commands, "|") != k.want || w.Edits {
			t.Errorf("%s: edits %v\n got %s\nwant %s", name, w.Edits, strings.Join(w.Commands, "|"), k.want)
		}
	}
}

// A plugin's folder is the kubelet's, or astray; other mounts are none of it.
func TestAstray(t *testing.T) {
	const k3s = "/var/lib/rancher/k3s/agent/kubelet/device-plugins"
	for name, k := range map[string]struct {
		mount, volume, path string
		want                string
	}{
		"the kubelet's":       {Sockets, "v", Sockets, ""},
		"with a slash":        {Sockets + "/", "v", Sockets + "/", ""},
		"another":             {Sockets, "v", k3s, "v " + k3s},
		"told of another":     {k3s, "v", k3s, ""},
		"of no volume":        {Sockets, "other", k3s, ""},
		"of no folder at all": {"/etc/config", "v", "/etc/x", ""},
	} {
		spec := &corev1.PodSpec{Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: k.volume, MountPath: k.mount}}}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: k.path}}}}}
		volume, folder := Astray(spec)
		if got := strings.TrimSpace(volume + " " + folder); got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}
