package stack

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// pluginConfig is the configuration of the device plugin's pod on one node. The pod's DaemonSet, the
// ConfigMap that it mounts and the entry of that which is in force on the node are found once: what
// is asked of sharing, of MPS and of what somebody wrote in vain begins with the same three.
type pluginConfig struct {
	part
	made  *parts.Set        // the DaemonSet that makes the pod; nil where it was not read
	from  *corev1.ConfigMap // of the DaemonSet's volumes; nil where there is none, or it was not read
	entry string            // empty where none is in force
}

// pluginConfigLabel names, on a node, the entry of the device plugin's configuration.
const pluginConfigLabel = "nvidia.com/device-plugin.config"

func (l *pluginLink) config() *pluginConfig {
	c := &pluginConfig{part: l.part}
	if c.made = l.s.kit.SetOf(l.pod); c.made != nil {
		c.from = configuredBy(l.s.w, c.made)
	}
	if c.from != nil {
		c.entry = inForce(l.s.w, l.n, c.from)
	}
	return c
}

// ref is the ConfigMap for people.
func (c *pluginConfig) ref() string { return "ConfigMap/" + c.from.Namespace + "/" + c.from.Name }

// configuredBy is the ConfigMap that a DaemonSet's pods are configured by: of its volumes. Nil where there is
// none, and where that was not read.
func configuredBy(w *view.Cluster, d *parts.Set) *corev1.ConfigMap {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		for _, cm := range w.State.ConfigMaps {
			if cm.Namespace == d.Namespace && cm.Name == v.ConfigMap.Name && configures(cm) {
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

// inForce is the entry of the device plugin's configuration that is in force on the node:
// that of its label, else the policy's default, else the only one; empty where none is.
func inForce(w *view.Cluster, n *view.Node, cm *corev1.ConfigMap) string {
	if name := n.Labels[pluginConfigLabel]; name != "" {
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
