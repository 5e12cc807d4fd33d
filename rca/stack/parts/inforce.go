package parts

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/view"
)

// ConfigLabel names, on a node, the entry of the device plugin's configuration.
const ConfigLabel = "nvidia.com/device-plugin.config"

// ConfiguredBy is the ConfigMap that a DaemonSet's pods are configured by: of its volumes. Nil where there is
// none, and where that was not read.
func ConfiguredBy(w *view.Cluster, d *Set) *corev1.ConfigMap {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		for _, cm := range w.State.ConfigMaps {
			if cm.Namespace == d.Namespace && cm.Name == v.ConfigMap.Name && Configures(cm) {
				return cm
			}
		}
	}
	return nil
}

// Configures says whether a ConfigMap is one of configurations of the device plugin, and not of
// scripts beside it: each has its version.
func Configures(cm *corev1.ConfigMap) bool {
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

// InForce is the entry of the device plugin's configuration that is in force on the node:
// that of its label, else the policy's default, else the only one; empty where none is.
func InForce(w *view.Cluster, n *view.Node, cm *corev1.ConfigMap) string {
	if name := n.Labels[ConfigLabel]; name != "" {
		return cm.Data[name]
	}
	for _, p := range w.State.ClusterPolicies {
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
