package rca

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// missedLabel is a requirement on its labels, or its name, that a node does not meet.
type missedLabel struct {
	corev1.NodeSelectorRequirement
	key string
	// inSelector tells spec.nodeSelector from required node affinity.
	inSelector bool
	// byName says that it is about the node's name; term and at where in the required
	// affinity it is.
	byName   bool
	term, at int
}

// of is what a node has of it.
func (m missedLabel) of(n *corev1.Node) (string, bool) {
	if m.byName {
		return n.Name, true
	}
	value, ok := n.Labels[m.key]
	return value, ok
}

func (m missedLabel) want() string {
	values := strings.Join(m.Values, "|")
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

func (m missedLabel) text() string {
	values := strings.Join(m.Values, "|")
	switch m.Operator {
	case corev1.NodeSelectorOpDoesNotExist:
		return "no " + m.key
	case corev1.NodeSelectorOpNotIn:
		return m.key + "!=" + values
	case corev1.NodeSelectorOpGt:
		return m.key + ">" + values
	case corev1.NodeSelectorOpLt:
		return m.key + "<" + values
	}
	return m.key + "=" + m.want()
}

// met judges as the NodeAffinity plugin does (nodeaffinity, isEmptyNodeSelectorTerm and
// labels.Requirement): a label that is absent is in no list, and numbers are whole.
func (m missedLabel) met(n *corev1.Node) bool {
	value, ok := m.of(n)
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
func missedTerm(a *corev1.NodeSelector, n *corev1.Node) []missedLabel {
	var nearest []missedLabel
	if a == nil {
		return nil
	}
	for i, t := range a.NodeSelectorTerms {
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
			continue // such a term matches nothing
		}
		var missed []missedLabel
		add := func(list []corev1.NodeSelectorRequirement, byName bool) {
			for at, e := range list {
				if m := (missedLabel{NodeSelectorRequirement: e, key: e.Key, byName: byName, term: i, at: at}); !m.met(n) {
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

// namesNodes says whether the required affinity is about names of nodes.
func namesNodes(pod *corev1.Pod) bool {
	a := requiredAffinity(pod)
	return a != nil && slices.ContainsFunc(a.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
}
