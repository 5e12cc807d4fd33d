package terms

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// MissedLabel is a requirement on its labels, or its name, that a node does not meet.
type MissedLabel struct {
	corev1.NodeSelectorRequirement
	Key string
	// InSelector tells spec.nodeSelector from required node affinity.
	InSelector bool
	// ByName says that it is about the node's name; Term and At are where in the required
	// affinity it is.
	ByName   bool
	Term, At int
	// Other is the label that nodes have under another name, where none has this one.
	Other string
}

// SelectorKeys are the keys of those that stand in spec.nodeSelector.
func SelectorKeys(missed []MissedLabel) []string {
	var out []string
	for _, m := range missed {
		if m.InSelector {
			out = append(out, m.Key)
		}
	}
	return out
}

// Instead is the label that a node has under the other name, with what is asked; empty where it has not.
func (m MissedLabel) Instead(n *corev1.Node) string {
	if value, ok := n.Labels[m.Other]; m.Other == "" || !ok || len(m.Values) != 1 || value != m.Values[0] {
		return ""
	}
	return m.Other + "=" + m.Values[0]
}

// Of is what a node has of it.
func (m MissedLabel) Of(n *corev1.Node) (string, bool) {
	if m.ByName {
		return n.Name, true
	}
	value, ok := n.Labels[m.Key]
	return value, ok
}

func (m MissedLabel) want() string {
	values := strings.Join(m.Values, "|")
	if values == "" && m.InSelector {
		values = `""`
	}
	switch m.Operator {
	case corev1.NodeSelectorOpExists:
		return "any value"
	case corev1.NodeSelectorOpDoesNotExist:
		return "none"
	case corev1.NodeSelectorOpNotIn:
		return "not " + values
	case corev1.NodeSelectorOpGt:
		return "more than " + values
	case corev1.NodeSelectorOpLt:
		return "less than " + values
	}
	return values
}

// Text is the requirement as people write it: key=a|b, key!=a, key>3, no key.
func (m MissedLabel) Text() string {
	values := strings.Join(m.Values, "|")
	switch m.Operator {
	case corev1.NodeSelectorOpDoesNotExist:
		return "no " + m.Key
	case corev1.NodeSelectorOpNotIn:
		return m.Key + "!=" + values
	case corev1.NodeSelectorOpGt:
		return m.Key + ">" + values
	case corev1.NodeSelectorOpLt:
		return m.Key + "<" + values
	}
	return m.Key + "=" + m.want()
}

// Met judges as the NodeAffinity plugin does (nodeaffinity, isEmptyNodeSelectorTerm and
// labels.Requirement): a label that is absent is in no list, and numbers are whole.
func (m MissedLabel) Met(n *corev1.Node) bool {
	value, ok := m.Of(n)
	switch m.Operator {
	case corev1.NodeSelectorOpIn:
		return ok && slices.Contains(m.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !ok || !slices.Contains(m.Values, value)
	case corev1.NodeSelectorOpExists:
		return ok
	case corev1.NodeSelectorOpDoesNotExist:
		return !ok
	}
	has, err := strconv.ParseInt(value, 10, 64)
	if err != nil || len(m.Values) != 1 {
		return false
	}
	bound, err := strconv.ParseInt(m.Values[0], 10, 64)
	return err == nil && (m.Operator == corev1.NodeSelectorOpGt && has > bound || m.Operator == corev1.NodeSelectorOpLt && has < bound)
}

// missedTerm is what the node does not meet of the term that comes nearest: terms are
// alternatives. nil when it meets one.
func missedTerm(a *corev1.NodeSelector, n *corev1.Node) []MissedLabel {
	var nearest []MissedLabel
	if a == nil {
		return nil
	}
	for i, t := range a.NodeSelectorTerms {
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
			continue // such a term matches nothing
		}
		var missed []MissedLabel
		add := func(list []corev1.NodeSelectorRequirement, byName bool) {
			for at, e := range list {
				if m := (MissedLabel{NodeSelectorRequirement: e, Key: e.Key, ByName: byName, Term: i, At: at}); !m.Met(n) {
					missed = append(missed, m)
				}
			}
		}
		add(t.MatchExpressions, false)
		add(t.MatchFields, true)
		if len(missed) == 0 {
			return nil
		}
		if nearest == nil || len(missed) < len(nearest) {
			nearest = missed
		}
	}
	return nearest
}

// Asks says whether a pod has that requirement too.
func Asks(pod *corev1.Pod, l MissedLabel) bool {
	if l.InSelector {
		value, ok := pod.Spec.NodeSelector[l.Key]
		return ok && value == l.Values[0]
	}
	a := view.RequiredAffinity(pod)
	return a != nil && slices.ContainsFunc(a.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(slices.Concat(t.MatchExpressions, t.MatchFields), func(e corev1.NodeSelectorRequirement) bool {
			return reflect.DeepEqual(e, l.NodeSelectorRequirement)
		})
	})
}

// namesNodes says whether the required affinity is about names of nodes.
func namesNodes(pod *corev1.Pod) bool {
	a := view.RequiredAffinity(pod)
	return a != nil && slices.ContainsFunc(a.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
}
