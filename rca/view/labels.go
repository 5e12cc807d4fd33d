package view

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequiredAffinity is the pod's required node affinity; nil when it has none.
func RequiredAffinity(pod *corev1.Pod) *corev1.NodeSelector {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// MadeFor is the node that a DaemonSet's pod is made for, before it is scheduled there
// (pkg/controller/daemon/util: a match of metadata.name); empty for any other pod.
func MadeFor(p *corev1.Pod) string {
	by := metav1.GetControllerOfNoCopy(p)
	required := RequiredAffinity(p)
	if by == nil || by.Kind != "DaemonSet" || required == nil {
		return ""
	}
	for _, t := range required.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// LabelColumn is what all nodes have of one label, read from their maps once for all
// incidents.
type LabelColumn struct {
	of       []*string // by Node.at; nil where a node lacks it
	Distinct []string  // as they come by the names of the nodes
}

// On is the label's value on a node; false where the node lacks it.
func (l *LabelColumn) On(n *Node) (value string, ok bool) {
	if v := l.of[n.at]; v != nil {
		return *v, true
	}
	return "", false
}

// Column is the label's values on all nodes, worked out once.
func (w *Cluster) Column(label string) *LabelColumn {
	if l := w.columns[label]; l != nil {
		return l
	}
	nodes := w.SortedNodes()
	l := &LabelColumn{of: make([]*string, len(nodes))}
	met := map[string]*string{}
	for i, n := range nodes {
		value, ok := n.Labels[label]
		if !ok {
			continue
		}
		if met[value] == nil {
			met[value] = &value
			l.Distinct = append(l.Distinct, value)
		}
		l.of[i] = met[value]
	}
	w.columns[label] = l
	return l
}

// LabelsAsked lists the labels that the pod's selector and its required affinity speak of.
func LabelsAsked(pod *corev1.Pod) []string {
	out := slices.AppendSeq([]string{}, maps.Keys(pod.Spec.NodeSelector))
	if a := RequiredAffinity(pod); a != nil {
		for _, t := range a.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				out = append(out, e.Key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
