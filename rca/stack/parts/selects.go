package parts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/view"
)

// Misses are why a DaemonSet has no pod on a node: labels of its selector that the node lacks,
// its affinity, taints that it does not tolerate. None: it selects the node.
type Misses struct {
	Labels   []string // of the selector, sorted: "key=value"
	Affinity bool
	Taints   []corev1.Taint
}

// None says that nothing keeps the DaemonSet off.
func (m Misses) None() bool { return m.Count() == 0 }

// Count is how much does.
func (m Misses) Count() int {
	n := len(m.Labels) + len(m.Taints)
	if m.Affinity {
		n++
	}
	return n
}

// systems begin the taints that Kubernetes, an installer or a cloud sets for purposes of its own.
var systems = []string{"CriticalAddonsOnly", "node-role.kubernetes.io/", "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cilium.io/", "karpenter.sh/"}

// ByPeople says that all taints in its way are of people's own.
func (m Misses) ByPeople() bool {
	return !slices.ContainsFunc(m.Taints, func(t corev1.Taint) bool {
		return slices.ContainsFunc(systems, func(prefix string) bool { return strings.HasPrefix(t.Key, prefix) })
	})
}

// Nowhere says that only taints of roles are in its way, and that no node of the cluster takes it: whose one machine is the control
// plane, too, means to run all on that.
func (d *Set) Nowhere(w *view.Cluster, m Misses) bool {
	return !slices.ContainsFunc(m.Taints, func(t corev1.Taint) bool { return !strings.HasPrefix(t.Key, "node-role.kubernetes.io/") }) &&
		!slices.ContainsFunc(w.SortedNodes(), func(n *view.Node) bool { return d.Misses(n).None() })
}

// tolerated are the taints that the DaemonSet controller has its pods tolerate
// (pkg/controller/daemon/util/daemonset_util.go, 1.36.3).
var tolerated = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// Misses asks the DaemonSet about one node, as its controller does. Of the taints, those
// that the API server's own controllers set and take away with the node's state are left out.
func (d *Set) Misses(n *view.Node) Misses {
	var m Misses
	spec := &d.Spec.Template.Spec
	for key, want := range spec.NodeSelector {
		if has, ok := n.Labels[key]; !ok || has != want {
			m.Labels = append(m.Labels, key+"="+want)
		}
	}
	slices.Sort(m.Labels)
	if len(m.Labels) == 0 {
		ok, err := d.affinity.Match(n.Node)
		m.Affinity = !ok || err != nil
	} else if a := view.RequiredAffinity(&corev1.Pod{Spec: *spec}); a != nil {
		own := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{Affinity: spec.Affinity}})
		ok, err := own.Match(n.Node)
		m.Affinity = !ok || err != nil
	}
	tolerations := slices.Concat(spec.Tolerations, tolerated)
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			continue
		}
		if !corev1helpers.TolerationsTolerateTaint(logr.Discard(), tolerations, &t, true) {
			m.Taints = append(m.Taints, t)
		}
	}
	return m
}

// Text says what the node lacks for the DaemonSet.
func (d *Set) Text(n *view.Node, m Misses) string {
	said := Lacking(n, m.Labels)
	if m.Affinity {
		said = append(said, "its node affinity wants "+d.Wants())
	}
	for _, t := range m.Taints {
		said = append(said, "it does not tolerate taint "+t.ToString())
	}
	return strings.Join(said, "; ")
}

// Lacking says, of labels that nodes are selected by, how the node has them.
func Lacking(n *view.Node, labels []string) []string {
	var out []string
	for _, label := range labels {
		key, _, _ := strings.Cut(label, "=")
		if has, ok := n.Labels[key]; ok {
			out = append(out, fmt.Sprintf("it selects nodes by label %s, here it is %q", label, has))
		} else {
			out = append(out, "it selects nodes by label "+label+", which is absent")
		}
	}
	return out
}

// Wants is the DaemonSet's required node affinity in words.
func (d *Set) Wants() string {
	a := view.RequiredAffinity(&corev1.Pod{Spec: d.Spec.Template.Spec})
	if a == nil {
		return "other nodes"
	}
	var terms []string
	for _, t := range a.NodeSelectorTerms {
		var all []string
		for _, e := range t.MatchExpressions {
			switch e.Operator {
			case corev1.NodeSelectorOpIn:
				all = append(all, e.Key+"="+strings.Join(e.Values, "|"))
			case corev1.NodeSelectorOpExists:
				all = append(all, e.Key)
			case corev1.NodeSelectorOpDoesNotExist:
				all = append(all, "no "+e.Key)
			default:
				all = append(all, fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, "|")))
			}
		}
		terms = append(terms, strings.Join(all, " and "))
	}
	return strings.Join(terms, ", or ")
}

// Accepts says whether the affinity would take the node with one more label.
func (d *Set) Accepts(n *view.Node, key, value string) bool {
	o := n.DeepCopy()
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[key] = value
	ok, err := d.affinity.Match(o)
	return ok && err == nil
}

// Deploys begins the labels by which the GPU Operator chooses the nodes of its operands.
const Deploys = "nvidia.com/gpu.deploy."

// OfOperator says whether the GPU Operator makes a DaemonSet's pods, and chooses their nodes
// by labels that it writes.
func (d *Set) OfOperator() bool {
	for key := range d.Spec.Template.Spec.NodeSelector {
		if strings.HasPrefix(key, Deploys) {
			return true
		}
	}
	return false
}
