package parts

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// What node feature discovery says of a node, and of it by what the GPU Operator chooses what it builds a driver
// with: the kernel, and on OpenShift the version of Red Hat's CoreOS.
const (
	Discovered  = "feature.node.kubernetes.io/"
	KernelLabel = Discovered + "kernel-version.full"
	OSTreeLabel = Discovered + "system-os_release.OSTREE_VERSION"
)

// unlabelable is what node feature discovery puts _ for in a kernel's name (source/kernel).
var unlabelable = regexp.MustCompile(`[^-A-Za-z0-9_.]`)

// KernelLabelOf is a kernel's name as node feature discovery labels it.
func KernelLabelOf(kernel string) string {
	return strings.Trim(unlabelable.ReplaceAllString(kernel, "_"), "-_.")
}

// RunsIt says whether the node itself reports what a label of node feature discovery is to say.
func RunsIt(n *view.Node, label string) bool {
	key, value, _ := strings.Cut(label, "=")
	switch info := n.Status.NodeInfo; key {
	case KernelLabel:
		return KernelLabelOf(info.KernelVersion) == value
	case OSTreeLabel:
		return slices.Contains(strings.Fields(info.OSImage), value)
	}
	return false
}

// gpuPresent is the label by which the GPU Operator tells that a node has a GPU.
const gpuPresent = "nvidia.com/gpu.present"

// DriverSelector is by which labels an NVIDIADriver chooses nodes; one that names none takes all with a
// GPU (api/nvidia/v1alpha1, GetNodeSelector).
func DriverSelector(d *unstructured.Unstructured) map[string]string {
	labels, _, err := unstructured.NestedStringMap(d.Object, "spec", "nodeSelector")
	if err != nil || len(labels) == 0 {
		return map[string]string{gpuPresent: "true"}
	}
	return labels
}

// Beside is another NVIDIADriver that chooses a node which this one chooses; empty where none does.
func Beside(w *view.Cluster, d *unstructured.Unstructured) string {
	for _, other := range w.State.NVIDIADrivers {
		if other.GetName() != d.GetName() && slices.ContainsFunc(w.SortedNodes(), func(n *view.Node) bool {
			return len(Unmet(n, DriverSelector(d))) == 0 && len(Unmet(n, DriverSelector(other))) == 0
		}) {
			return other.GetName()
		}
	}
	return ""
}

// ConditionWith says what an object's condition that is True for a reason says; false where it has none.
func ConditionWith(o *unstructured.Unstructured, reason string) (says string, is bool) {
	all, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return "", false
	}
	for _, item := range all {
		if c, ok := item.(map[string]any); ok && c["reason"] == reason && c["status"] == "True" {
			says, _ := c["message"].(string)
			return says, true
		}
	}
	return "", false
}

// Unmet are the labels of a selector that the node does not carry, sorted.
func Unmet(n *view.Node, selector map[string]string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if n.Labels[key] != selector[key] {
			out = append(out, key+"="+selector[key])
		}
	}
	return out
}

// LookFor are the commands by which a node's GPU is found.
func LookFor(w *view.Cluster, n *view.Node, d *Set) []string {
	out := []string{"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host lspci -nn -d 10de:"}
	if d.OfOperator() {
		return append(out, ReuseOperator(w, d.Namespace)+"--set nfd.enabled=true")
	}
	out = append(out, d.Reuse("nvdp/nvidia-device-plugin")+"--set gfd.enabled=true  # brings node feature discovery")
	if d.Accepts(n, gpuPresent, "true") {
		out = append(out, "kubectl label node "+n.Name+" "+gpuPresent+"=true  # by hand, in its place")
	}
	return out
}

// DiscoveredBut are the labels of node feature discovery on the node but for some.
func DiscoveredBut(n *view.Node, but []string) []string {
	var out []string
	for key := range n.Labels {
		if strings.HasPrefix(key, Discovered) && !slices.Contains(but, key) {
			out = append(out, key)
		}
	}
	return out
}

// MachineTold says whether a cloud names the machine's type: of those with GPUs it is known.
// What distributions, Talos's cloud controller manager (metal), vSphere's and OpenStack's write there tells nothing: a
// virtual machine of any kind or flavour may be handed a card. Or somebody has said how it is with GPUs there.
func MachineTold(n *view.Node) bool {
	if n.Labels[gpuPresent] != "" || n.Labels[view.LabelGPUCount] != "" {
		return true
	}
	kind := n.Labels[corev1.LabelInstanceTypeStable]
	handed := strings.HasPrefix(n.Spec.ProviderID, "vsphere://") || strings.HasPrefix(n.Spec.ProviderID, "openstack://")
	return kind != "" && !handed && !slices.Contains([]string{"k3s", "rke2", "metal"}, kind)
}

// Discovered says whether all that keeps a DaemonSet from the node are labels that node
// feature discovery, or what goes by it, writes.
func (d *Set) Discovered(n *view.Node, m Misses) bool {
	if m.None() {
		return false
	}
	written := func(key string) bool {
		return strings.HasPrefix(key, Discovered) || strings.HasPrefix(key, "nvidia.com/")
	}
	for _, label := range m.Labels {
		key, _, _ := strings.Cut(label, "=")
		if _, has := n.Labels[key]; has || !written(key) {
			return false
		}
	}
	if !m.Affinity {
		return true
	}
	a := view.RequiredAffinity(&corev1.Pod{Spec: d.Spec.Template.Spec})
	return a != nil && slices.ContainsFunc(a.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions) > 0 && !slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return !written(e.Key) })
	})
}

// Unlooked says that node feature discovery has written nothing on the node.
func Unlooked(n *view.Node) bool { return len(DiscoveredBut(n, nil)) == 0 }

// NotLooked is the claim of that.
func NotLooked() diagnosis.Claim {
	return diagnosis.That("keys("+diagnosis.Labels+")", "", diagnosis.NoneBegins, Discovered)
}

// ByHand says that the only label of node feature discovery is that of a GPU, where discovery is
// kept off the node: where it looks it writes of the processor and the system, too.
func (k *Kit) ByHand(n *view.Node) bool {
	sets := k.Sets(Discovery)
	return len(sets) > 0 && k.Pod(n, Discovery) == nil && !sets[0].Misses(n).None() && len(DiscoveredBut(n, view.GPULabels)) == 0
}

// ByDiscovery is a part's DaemonSet that nothing keeps from the node but labels that node feature discovery writes, which has
// written none there; nil for none.
func (k *Kit) ByDiscovery(n *view.Node, r Role) *Set {
	for _, d := range k.Sets(r) {
		if m := d.Misses(n); Unlooked(n) && len(m.Taints) == 0 && d.Discovered(n, m) {
			return d
		}
	}
	return nil
}
