package stack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// mpsCapable is what the MPS daemon goes by; GPU feature discovery writes it where the
// device plugin's configuration shares GPUs by MPS.
const mpsCapable = "nvidia.com/mps.capable"

// sharing: the device plugin is told to share GPUs by MPS, and waits without an end for a
// daemon that has no pod on the node (k8s-device-plugin internal/plugin/mps.go). Its chart
// installs the daemon's DaemonSet also where nobody asks for MPS, so that alone says nothing.
func (s *Stack) sharing(n *view.Node, pod *corev1.Pod) *Finding {
	from := s.sharesByMPS(n, pod)
	if from == "" || s.podOf(n, mps) != nil {
		return nil
	}
	if len(s.sets[mps]) == 0 {
		return s.withoutMPS(n, pod, from)
	}
	i := slices.IndexFunc(s.sets[mps], func(d *set) bool { return d.Namespace == pod.Namespace })
	if i < 0 {
		return nil
	}
	d := s.sets[mps][i]
	m := d.misses(n)
	if m.none() {
		return nil
	}
	f := s.finding(Registration, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has GPUs and offers none: its device plugin waits for the MPS daemon, and %s/%s has no pod there: %s", d.Namespace, d.Name, d.text(n, m)), d.ref(), d.text(n, m), d.claims(n, m)...)
	f.Certainty = diagnosis.Likely // that it waits for this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(from, "shares GPUs by MPS", diagnosis.That("data", "", diagnosis.Contains, "mps:")))
	until := "the MPS daemon runs on " + n.Name
	mend := s.letOn(n, d, m, until)
	if slices.Contains(m.labels, mpsCapable+"=true") && s.podOf(n, features) == nil {
		mend = Mend{Kind: diagnosis.RepairDeviceStack, Title: "have GPU feature discovery run on " + n.Name + ", which labels it " + mpsCapable + "=true", Until: until, Risk: diagnosis.LowRisk, Minutes: 5,
			Commands: []string{"helm list -n " + d.Namespace, fmt.Sprintf("helm upgrade RELEASE nvdp/nvidia-device-plugin -n %s --reuse-values --set gfd.enabled=true", d.Namespace), "kubectl get node " + n.Name + " -L " + mpsCapable}}
	}
	mend.Unproven = "nobody knows how the GPUs of " + n.Name + " are shared before they are announced"
	f.Mends = []Mend{mend}
	return f
}

// withoutMPS: the same, where nobody has installed the daemon: the chart of the device plugin and the
// GPU Operator bring it, a DaemonSet made by hand does not, and there the plugin does not even
// start (it wants --mps-root; k8s-device-plugin cmd/nvidia-device-plugin).
func (s *Stack) withoutMPS(n *view.Node, pod *corev1.Pod, from string) *Finding {
	l := s.look(pod)
	f := s.finding(Plugin, Missing, diagnosis.DevicePluginDown, "has GPUs and offers none: its device plugin is to share them by MPS, and no MPS daemon is installed: it is "+orReady(l), from, "shares GPUs by MPS", diagnosis.That("data", "", diagnosis.Contains, "mps:"))
	f.Certainty = diagnosis.Likely // that it stops for this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(pod), orReady(l)+"; no DaemonSet is the MPS daemon", append(l.claims, diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, view.MPSName).Of("DaemonSet/*"))...))
	_, at, _ := strings.Cut(from, "/")
	space, name, _ := strings.Cut(at, "/")
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install the MPS daemon beside the device plugin, or have ConfigMap " + at + " share GPUs by timeSlicing", Risk: diagnosis.MediumRisk, Minutes: 10,
		Steps: []string{"have the device plugin come by its chart, which brings the daemon and GPU feature discovery; or write timeSlicing for mps in the ConfigMap: no limit of memory is kept then"},
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s --tail=50  # says what it wants of MPS", pod.Namespace, pod.Name),
			fmt.Sprintf("kubectl -n %s edit configmap %s  # timeSlicing for mps; then delete the pod %s", space, name, pod.Name),
			fmt.Sprintf("helm upgrade -i nvdp nvdp/nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin -n %s --set config.name=%s --set gfd.enabled=true  # in its place: delete the DaemonSet made by hand first", pod.Namespace, name)},
		Unproven: "nobody knows how the GPUs of " + n.Name + " are shared before they are announced"}}
	return f
}

// pluginConfigLabel names, on a node, the entry of the device plugin's configuration.
const pluginConfigLabel = "nvidia.com/device-plugin.config"

// sharesByMPS is the ConfigMap by which the plugin's pod on the node shares GPUs by MPS; empty
// where it does not, and where that was not read.
func (s *Stack) sharesByMPS(n *view.Node, pod *corev1.Pod) string {
	if cm := s.configOf(pod); cm != nil && byMPS(s.pluginEntry(n, cm)) {
		return "ConfigMap/" + cm.Namespace + "/" + cm.Name
	}
	return ""
}

// configOf is the ConfigMap that the plugin's pod is configured by: of the volumes of its
// DaemonSet. Nil where there is none, and where that was not read.
func (s *Stack) configOf(pod *corev1.Pod) *corev1.ConfigMap {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil || s.byName[pod.Namespace+"/"+by.Name] == nil {
		return nil
	}
	for _, v := range s.byName[pod.Namespace+"/"+by.Name].Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		for _, cm := range s.w.State.ConfigMaps {
			if cm.Namespace == pod.Namespace && cm.Name == v.ConfigMap.Name && configures(cm) {
				return cm
			}
		}
	}
	return nil
}

// configures says whether a ConfigMap is one of configurations of the device plugin, and not of
// scripts beside it: each has its version.
func configures(cm *corev1.ConfigMap) bool {
	for _, entry := range cm.Data {
		var c struct {
			Version string `json:"version"`
		}
		if yaml.Unmarshal([]byte(entry), &c) == nil && c.Version != "" {
			return true
		}
	}
	return false
}

// pluginEntry is the entry of the device plugin's configuration that is in force on the node:
// that of its label, else the policy's default, else the only one; empty where none is.
func (s *Stack) pluginEntry(n *view.Node, cm *corev1.ConfigMap) string {
	if name := n.Labels[pluginConfigLabel]; name != "" {
		return cm.Data[name]
	}
	for _, p := range s.w.State.ClusterPolicies {
		if name, _, err := unstructured.NestedString(p.Object, "spec", "devicePlugin", "config", "default"); err == nil && name != "" {
			return cm.Data[name]
		}
	}
	if len(cm.Data) == 1 {
		for _, only := range cm.Data {
			return only
		}
	}
	return cm.Data["default"]
}

// byMPS says whether an entry of the device plugin's configuration shares GPUs by MPS
// (k8s-device-plugin api/config/v1).
func byMPS(entry string) bool {
	var c struct {
		Sharing struct {
			MPS *struct {
				Resources []any `json:"resources"`
			} `json:"mps"`
		} `json:"sharing"`
	}
	return strings.TrimSpace(entry) != "" && yaml.Unmarshal([]byte(entry), &c) == nil && c.Sharing.MPS != nil && len(c.Sharing.MPS.Resources) > 0
}
