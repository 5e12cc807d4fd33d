package stack

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Misread is a configuration of the device plugin that somebody has written for a node, and that
// does not come into force there: the plugin says nothing of it, and offers what it offers without.
type Misread struct {
	Says     string // of the node
	Evidence []diagnosis.Evidence
	Mend     Mend
}

// Misread looks for such a configuration; nil where there is none, and where what would tell was
// not read.
func (s *Stack) Misread(n *view.Node) *Misread {
	l := s.pluginOn(n)
	if l == nil {
		return nil
	}
	c := l.config()
	if m := c.outdated(); m != nil || parts.Replicas(n) > 1 {
		return m
	}
	if c.made == nil {
		return nil
	}
	if name := n.Labels[pluginConfigLabel]; name != "" && !parts.ManagesConfig(&c.made.Spec.Template.Spec) {
		return c.labelUnread(name)
	}
	return c.onlyEnvironment()
}

// Misnamed is a configuration by which the plugin shares GPUs of the node, and does not name them
// as it is meant to; nil where there is none.
func (s *Stack) Misnamed(n *view.Node) *Misread {
	if l := s.pluginOn(n); l != nil {
		return l.config().renameMisplaced()
	}
	return nil
}

// outdated: the plugin has started before its configuration was written as it is, which has it offer
// each GPU more often than it does. It reads it when it starts, and nothing tells it of a change
// (gpu-operator: "the Operator does not monitor the time-slicing config maps").
func (c *pluginConfig) outdated() *Misread {
	shares := parts.SharesOf(c.entry)
	if shares == nil {
		return nil
	}
	cm, written, began := c.from, parts.WrittenAt(c.from), parts.ReadySince(c.pod)
	wants, has := shares.Each(view.WholeGPU), max(1, parts.Replicas(c.n))
	switch {
	case wants <= has || !written.IsZero() && !written.After(began):
		return nil
	case written.IsZero():
		return c.contradicted(wants, has)
	}
	at := cm.Namespace + "/" + cm.Name
	says := fmt.Sprintf("its device plugin has started before ConfigMap %s was last written, which shares each GPU %d times", at, wants)
	if parts.Replicas(c.n) > 0 { // else nobody says how often it does
		says += fmt.Sprintf(", and offers each %d times", has)
	}
	return &Misread{Says: says,
		Evidence: []diagnosis.Evidence{
			diagnosis.Fact("ConfigMap/"+at, fmt.Sprintf("has replicas %d, written at %s", wants, diagnosis.Clock(written)), diagnosis.That("data", "", diagnosis.Contains, fmt.Sprintf("replicas: %d", wants))),
			diagnosis.Fact(podRef(c.pod), "Ready since "+diagnosis.Clock(began), view.Since("Ready", began)),
		},
		Mend: c.startAgain(shares, wants, has)}
}

// contradicted is outdated where nothing tells when the configuration was written: GPU feature discovery, which reads what the
// plugin reads, counts fewer.
func (c *pluginConfig) contradicted(wants, has int) *Misread {
	count := parts.Replicas(c.n)
	if count == 0 {
		return nil
	}
	return &Misread{Says: fmt.Sprintf("ConfigMap %s/%s shares each GPU %d times, and its device plugin offers each %d times, as if it had started before that was written", c.from.Namespace, c.from.Name, wants, has),
		Evidence: []diagnosis.Evidence{
			diagnosis.Fact(c.ref(), fmt.Sprintf("has replicas %d", wants), diagnosis.That("data", "", diagnosis.Contains, fmt.Sprintf("replicas: %d", wants))),
			diagnosis.Fact(c.n.Ref(), fmt.Sprintf("label %s=%d", parts.ReplicasLabel, count), c.n.Labelled(parts.ReplicasLabel)...),
		},
		Mend: Mend{Kind: diagnosis.RestartDevicePlugin, Unproven: "when the ConfigMap was written is not told: the device plugin may have read it, and not taken it"}}
}

// startAgain has the plugin read its configuration, by which it offers each GPU so often, and no
// longer as often as it does. Without GPU feature discovery's word nobody knows how often that is,
// and under another name not who may then have how many.
func (c *pluginConfig) startAgain(shares *parts.Shares, wants, has int) Mend {
	m := Mend{Kind: diagnosis.RestartDevicePlugin}
	offered, told := c.n.Status.Allocatable[view.WholeGPU]
	if !told || parts.Replicas(c.n) == 0 || shares.Sharing.TimeSlicing.Rename {
		m.Unproven = "what the device plugin offers once it has read it, only it tells"
		return m
	}
	m.Offers = corev1.ResourceList{view.WholeGPU: *resource.NewQuantity(offered.Value()/int64(has)*int64(wants), resource.DecimalSI)}
	return m
}

// labelUnread: the node's label names an entry, and nothing of the plugin there looks at it.
func (c *pluginConfig) labelUnread(name string) *Misread {
	n, d := c.n, c.made
	label := pluginConfigLabel + "=" + name
	m := &Misread{Says: fmt.Sprintf("its label %s is read by nobody: the device plugin %s/%s runs without a config manager", label, d.Namespace, d.Name),
		Evidence: []diagnosis.Evidence{
			diagnosis.Fact(n.Ref(), "label "+label, n.Labelled(pluginConfigLabel)...),
			diagnosis.Fact(d.Ref(), "has no container that is the config manager", diagnosis.That("spec.template.spec", "", diagnosis.ContainsNot, "config-manager")),
		}}
	cm := parts.ConfigWith(c.s.w, d.Namespace, name)
	if cm != nil {
		m.Evidence = append(m.Evidence, diagnosis.Fact("ConfigMap/"+cm.Namespace+"/"+cm.Name, fmt.Sprintf("its entry %s would have GPUs shared by time-slicing", name), diagnosis.That("data", name, diagnosis.Exists, "")))
	}
	m.Mend = c.give(cm)
	return m
}

// give has the plugin read a ConfigMap, by whoever makes its pods; nil: which one is not
// known.
func (c *pluginConfig) give(cm *corev1.ConfigMap) Mend {
	n, d := c.n, c.made
	space, name, title := d.Namespace, "CONFIGMAP", "its configuration"
	if cm != nil {
		space, name, title = cm.Namespace, cm.Name, "ConfigMap "+cm.Namespace+"/"+cm.Name
	}
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "have the device plugin of " + n.Name + " read " + title, Risk: diagnosis.MediumRisk, Minutes: 5,
		Steps:    []string{"give the device plugin its config manager and the ConfigMap", "see what the node offers then: who holds a whole GPU now may share it from then on"},
		Unproven: "what the device plugin offers once it has read it, only it tells"}
	if cm == nil {
		m.Commands = append(m.Commands, "kubectl get configmaps -A | grep -i -e plugin -e slicing  # CONFIGMAP: the one with an entry "+n.Labels[pluginConfigLabel])
	}
	switch {
	case d.OfOperator():
		m.Commands = append(m.Commands, fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"devicePlugin":{"config":{"name":"%s"}}}}'  # of namespace %s`, c.s.policyName(), name, d.Namespace))
	case d.Labels["app.kubernetes.io/managed-by"] == "Helm":
		m.Commands = append(m.Commands, "helm list -n "+d.Namespace, d.Reuse("nvdp/nvidia-device-plugin")+"--set config.name="+name)
	default:
		m.Commands = append(m.Commands, "helm repo add nvdp https://nvidia.github.io/k8s-device-plugin && helm repo update",
			fmt.Sprintf("kubectl -n %s delete daemonset %s  # pods that run keep their GPUs; two device plugins must not serve one node", d.Namespace, d.Name),
			fmt.Sprintf("helm upgrade -i nvdp nvdp/nvidia-device-plugin -n %s --set config.name=%s --set gfd.enabled=true", space, name))
	}
	m.Commands = append(m.Commands, "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")
	return m
}

// onlyEnvironment: a ConfigMap with a configuration is in the plugin's environment, and it reads
// a file.
func (c *pluginConfig) onlyEnvironment() *Misread {
	d := c.made
	for _, k := range d.Spec.Template.Spec.Containers {
		if !parts.IsPlugin(k) {
			continue
		}
		for _, from := range k.EnvFrom {
			if from.ConfigMapRef == nil {
				continue
			}
			for _, cm := range c.s.w.State.ConfigMaps {
				if cm.Namespace != d.Namespace || cm.Name != from.ConfigMapRef.Name {
					continue
				}
				for _, entry := range slices.Sorted(maps.Keys(cm.Data)) {
					if parts.SharesOf(cm.Data[entry]) == nil {
						continue
					}
					return &Misread{Says: fmt.Sprintf("ConfigMap %s/%s is only in the environment of the device plugin, which reads its configuration from a file", cm.Namespace, cm.Name),
						Evidence: []diagnosis.Evidence{diagnosis.Fact(d.Ref(), "takes ConfigMap "+cm.Name+" as envFrom", diagnosis.That("spec.template.spec", "", diagnosis.Contains, cm.Name)), diagnosis.Fact("ConfigMap/"+cm.Namespace+"/"+cm.Name, "has entry "+entry, diagnosis.That("data", entry, diagnosis.Exists, ""))},
						Mend:     c.give(cm)}
				}
			}
		}
	}
	return nil
}

// renameMisplaced: the entry in force says renameByDefault where the plugin does not look.
func (c *pluginConfig) renameMisplaced() *Misread {
	shares := parts.SharesOf(c.entry)
	if shares == nil || shares.Flags["renameByDefault"] != true || shares.Sharing.TimeSlicing.Rename {
		return nil
	}
	cm := c.from
	at := cm.Namespace + "/" + cm.Name
	return &Misread{Says: fmt.Sprintf("renameByDefault stands below flags in ConfigMap %s, where the device plugin does not look", at),
		Evidence: []diagnosis.Evidence{diagnosis.Fact("ConfigMap/"+at, "has renameByDefault below flags, and not below sharing.timeSlicing", diagnosis.That("data", "", diagnosis.Contains, "renameByDefault"))},
		Mend: Mend{Kind: diagnosis.RepairDeviceStack, Title: "have renameByDefault stand below sharing.timeSlicing in ConfigMap " + at, Risk: diagnosis.MediumRisk, Minutes: 5,
			Steps:    []string{"move the line renameByDefault: true from flags to sharing.timeSlicing", "have who asks the old name ask " + string(view.WholeGPU) + view.SharedSuffix + ": the node offers the old one no more"},
			Commands: []string{fmt.Sprintf("kubectl -n %s edit configmap %s", cm.Namespace, cm.Name), "kubectl get node " + c.n.Name + " -o jsonpath='{.status.allocatable}'"},
			Unproven: "what the device plugin offers once it has read it, only it tells"}}
}

// LayoutUnread is that the node's label asks for a layout of its GPUs, and MIG manager is kept off it, so
// that nobody carries it out or says that it did. Nil where MIG manager is there, has said
// something, or is not to be seen at all.
func (s *Stack) LayoutUnread(n *view.Node) *Misread {
	asked, state := n.Labels[view.LabelMIGConfig], n.Labels[view.LabelMIGState]
	if asked == "" || state != "" || len(s.kit.Sets(parts.MIGManager)) == 0 || n.MIGManagerPod() != nil {
		return nil
	}
	d := s.kit.Sets(parts.MIGManager)[0]
	m := d.Misses(n)
	if m.None() {
		return nil
	}
	mend := s.letOn(n, d, m, "")
	mend.Unproven = "what MIG manager makes of it only it says, in label " + view.LabelMIGState
	return &Misread{Says: fmt.Sprintf("its label %s=%s is read by nobody: %s/%s has no pod there: %s", view.LabelMIGConfig, asked, d.Namespace, d.Name, d.Text(n, m)),
		Evidence: []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "label "+view.LabelMIGConfig+"="+asked+", and no "+view.LabelMIGState, n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...), diagnosis.Fact(d.Ref(), d.Text(n, m), d.Claims(n, m)...)},
		Mend:     mend}
}
