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
	i := slices.IndexFunc(s.sets[mps], func(d *set) bool { return d.Namespace == pod.Namespace })
	if i < 0 || s.podOf(n, mps) != nil {
		return nil
	}
	d := s.sets[mps][i]
	m := d.misses(n)
	from := s.sharesByMPS(n, pod)
	if m.none() || from == "" {
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
			if cm.Namespace == pod.Namespace && cm.Name == v.ConfigMap.Name && len(cm.Data) > 0 {
				return cm
			}
		}
	}
	return nil
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
