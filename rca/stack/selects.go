package stack

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

// misses are why a DaemonSet has no pod on a node: labels of its selector that the node lacks,
// its affinity, taints that it does not tolerate. None: it selects the node.
type misses struct {
	labels   []string // of the selector, sorted: "key=value"
	affinity bool
	taints   []corev1.Taint
}

func (m misses) none() bool { return len(m.labels)+len(m.taints) == 0 && !m.affinity }

func (m misses) count() int {
	n := len(m.labels) + len(m.taints)
	if m.affinity {
		n++
	}
	return n
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

// misses asks the DaemonSet about one node, as its controller does. Of the taints, those
// that the API server's own controllers set and take away with the node's state are left out.
func (d *set) misses(n *view.Node) misses {
	var m misses
	spec := &d.Spec.Template.Spec
	for key, want := range spec.NodeSelector {
		if has, ok := n.Labels[key]; !ok || has != want {
			m.labels = append(m.labels, key+"="+want)
		}
	}
	slices.Sort(m.labels)
	if len(m.labels) == 0 {
		ok, err := d.affinity.Match(n.Node)
		m.affinity = !ok || err != nil
	} else if a := view.RequiredAffinity(&corev1.Pod{Spec: *spec}); a != nil {
		own := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{Affinity: spec.Affinity}})
		ok, err := own.Match(n.Node)
		m.affinity = !ok || err != nil
	}
	tolerations := slices.Concat(spec.Tolerations, tolerated)
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule || strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			continue
		}
		if !corev1helpers.TolerationsTolerateTaint(logr.Discard(), tolerations, &t, true) {
			m.taints = append(m.taints, t)
		}
	}
	return m
}

// text says what the node lacks for the DaemonSet.
func (d *set) text(n *view.Node, m misses) string {
	parts := lacking(n, m.labels)
	if m.affinity {
		parts = append(parts, "its node affinity wants "+d.wants())
	}
	for _, t := range m.taints {
		parts = append(parts, "it does not tolerate taint "+t.ToString())
	}
	return strings.Join(parts, "; ")
}

// lacking says, of labels that nodes are selected by, how the node has them.
func lacking(n *view.Node, labels []string) []string {
	var parts []string
	for _, label := range labels {
		key, _, _ := strings.Cut(label, "=")
		if has, ok := n.Labels[key]; ok {
			parts = append(parts, fmt.Sprintf("it selects nodes by label %s, here it is %q", label, has))
		} else {
			parts = append(parts, "it selects nodes by label "+label+", which is absent")
		}
	}
	return parts
}

// wants is the DaemonSet's required node affinity in words.
func (d *set) wants() string {
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

// accepts says whether the affinity would take the node with one more label.
func (d *set) accepts(n *view.Node, key, value string) bool {
	o := n.DeepCopy()
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[key] = value
	ok, err := d.affinity.Match(o)
	return ok && err == nil
}
