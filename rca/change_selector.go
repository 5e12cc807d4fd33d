package rca

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// selecting has the workload ask for what the node has of the labels that it misses: of
// a selector another value, of required affinity a wider term.
func (c *Bench) selecting(n *nodeView, missed []missedLabel) []change {
	if len(missed) == 0 || slices.ContainsFunc(missed, func(m missedLabel) bool { return m.byName }) && c.Incident.Workload.Kind == "DaemonSet" {
		return nil // its controller makes a pod for each node, by name
	}
	risk, texts := LowRisk, make([]string, 0, len(missed))
	inAffinity := slices.ContainsFunc(missed, func(m missedLabel) bool { return !m.inSelector })
	for _, m := range missed {
		texts = append(texts, m.instead(n.Node))
	}
	title := "select " + strings.Join(texts, ", ")
	if inAffinity {
		risk = MediumRisk // it was meant, and not misspelled alone
		if terms := len(requiredAffinity(c.Pod).NodeSelectorTerms); terms > 1 {
			title += fmt.Sprintf(" (alternative %d of %d)", missed[len(missed)-1].term+1, terms)
		}
	}
	return []change{c.once(title, func(title string) change {
		ch := change{kind: FixSelector, cause: NodeSelectorMismatch, minutes: 1, risk: risk, title: title + " in " + c.workloadName()}
		selector, patch := otherSelector(c.Pod.Spec.NodeSelector, n.Node, missed)
		spec := map[string]any{}
		if len(patch) > 0 {
			spec["nodeSelector"] = patch
		}
		var affinity *corev1.Affinity
		if inAffinity {
			affinity = widened(c.Pod.Spec.Affinity, n.Node, missed)
			spec["affinity"] = map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
		}
		ch.pod = func(p *corev1.Pod) {
			p.Spec.NodeSelector = selector
			if inAffinity {
				p.Spec.Affinity = affinity
			}
		}
		if t := c.world.template(c.Incident.Workload); inAffinity && t != nil && !reflect.DeepEqual(requiredAffinity(&corev1.Pod{Spec: *t}), requiredAffinity(c.Pod)) {
			ch.manual = true // somebody gives its pods terms that the template does not have
			ch.commands = []string{fmt.Sprintf("kubectl -n %s edit %s  # the node affinity of its pods is not of its template: see who sets it", c.Incident.Workload.Namespace, c.workloadName())}
			return ch
		}
		c.editTemplate(&ch, spec, false)
		return ch
	})}
}

// instead says what would be asked for.
func (m missedLabel) instead(n *corev1.Node) string {
	value, ok := m.of(n)
	switch {
	case ok && (m.inSelector || m.byName && m.Operator == corev1.NodeSelectorOpIn):
		return m.key + "=" + value
	case ok && m.Operator == corev1.NodeSelectorOpIn:
		return m.key + "=" + value + " too"
	case len(m.loosened(n)) > 0:
		m.Values = m.loosened(n)
		return m.text()
	}
	return "no " + m.key
}

// loosened are the values of the requirement that the node meets; none: it meets none.
func (m missedLabel) loosened(n *corev1.Node) []string {
	value, ok := m.of(n)
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case !ok:
		return nil
	case m.byName && m.Operator == corev1.NodeSelectorOpIn:
		return []string{value} // the API takes one name alone
	case m.Operator == corev1.NodeSelectorOpIn:
		return append(slices.Clone(m.Values), value)
	case m.Operator == corev1.NodeSelectorOpNotIn:
		return slices.DeleteFunc(slices.Clone(m.Values), func(v string) bool { return v == value })
	case m.Operator == corev1.NodeSelectorOpGt && err == nil:
		return []string{strconv.FormatInt(number-1, 10)}
	case m.Operator == corev1.NodeSelectorOpLt && err == nil:
		return []string{strconv.FormatInt(number+1, 10)}
	}
	return nil
}

// otherSelector is the selector that the node meets, and the patch that makes it.
func otherSelector(from map[string]string, n *corev1.Node, missed []missedLabel) (selector map[string]string, patch map[string]any) {
	selector, patch = maps.Clone(from), map[string]any{}
	for _, m := range missed {
		if !m.inSelector {
			continue
		}
		if value, ok := n.Labels[m.key]; ok {
			selector[m.key], patch[m.key] = value, value
		} else {
			delete(selector, m.key)
			patch[m.key] = nil
		}
	}
	return selector, patch
}

// widened is the affinity with the nearest term as the node meets it; without any where
// nothing of that term is left.
func widened(from *corev1.Affinity, n *corev1.Node, missed []missedLabel) *corev1.Affinity {
	a := from.DeepCopy()
	required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	var term *corev1.NodeSelectorTerm
	for _, m := range slices.Backward(missed) { // what is left out moves those behind it
		if m.inSelector {
			continue
		}
		term = &required.NodeSelectorTerms[m.term]
		list := &term.MatchExpressions
		if m.byName {
			list = &term.MatchFields
		}
		if values := m.loosened(n); len(values) > 0 {
			(*list)[m.at].Values = values
		} else {
			*list = slices.Delete(*list, m.at, m.at+1)
		}
	}
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	return a
}
