package stack

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
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
const pluginConfigLabel = parts.ConfigLabel

func (l *pluginLink) config() *pluginConfig {
	c := &pluginConfig{part: l.part}
	if c.made = l.s.kit.SetOf(l.pod); c.made != nil {
		c.from = parts.ConfiguredBy(l.s.w, c.made)
	}
	if c.from != nil {
		c.entry = parts.InForce(l.s.w, l.n, c.from)
	}
	return c
}

// ref is the ConfigMap for people.
func (c *pluginConfig) ref() string { return "ConfigMap/" + c.from.Namespace + "/" + c.from.Name }
