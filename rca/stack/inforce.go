package stack

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
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

// managesConfig says whether what fails is the config manager: by its name, else one that looks for an entry which is not there.
func (l *pluginLink) managesConfig() bool {
	if strings.HasPrefix(l.Where, "config-manager") {
		return true
	}
	return l.config().lacks() != ""
}

// lacks is the entry that the node's label names and the plugin's ConfigMap has not, where the config manager is what fails; empty else.
func (c *pluginConfig) lacks() string {
	name := c.n.Labels[pluginConfigLabel]
	if c.from == nil || name == "" || c.State != parts.Failed || !parts.OfConfigManager(&c.made.Spec.Template.Spec, c.Where) {
		return ""
	}
	if _, has := c.from.Data[name]; has {
		return ""
	}
	return name
}

// unwritten adds to a finding of the config manager's that the entry which the node's label names is not there.
func (c *pluginConfig) unwritten(f *Finding) {
	name := c.lacks()
	if name == "" {
		return
	}
	f.Says += fmt.Sprintf("; its label %s=%s names an entry that ConfigMap %s/%s has not", pluginConfigLabel, name, c.from.Namespace, c.from.Name)
	f.Evidence = append(f.Evidence, diagnosis.Fact(c.n.Ref(), "label "+pluginConfigLabel+"="+name, c.n.Labelled(pluginConfigLabel)...),
		diagnosis.Fact(c.ref(), "has no entry "+name, diagnosis.That("data", name, diagnosis.Absent, "")))
}
