package rca

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeSelectorMismatch names the key that does not match and the nearest value
// that some node has.
var nodeSelectorMismatch = Rule{ID: NodeSelectorMismatch, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if b.Plugin != "NodeAffinity" && !strings.Contains(b.Reason, "[NodeAffinity]") {
		return nil
	}
	m := c.missedOn(n)
	if requiredAffinity(c.Pod) == nil && len(m.labels) == 0 || requiredAffinity(c.Pod) != nil && c.nodeMatches(n) {
		return nil
	}
	if len(m.labels) == 0 {
		return &finding{Proven, "node affinity does not match", []Evidence{{n.ref(), "the required node affinity does not match its labels"}}}
	}
	evidence, ref := make([]Evidence, len(m.facts)), n.ref()
	for i, fact := range m.facts {
		evidence[i] = Evidence{ref, fact}
	}
	return &finding{Proven, m.says, evidence}
}}

// missed is which labels do not match on nodes that have the same of those that the pod
// speaks of, in words, and what of the workload could be changed for them.
type missed struct {
	labels []missedLabel
	facts  []string // one for each
	says   string   // with what comes nearest
}

// missedOn is worked out once for nodes that have the same of the labels spoken of.
func (c *Case) missedOn(n *nodeView) *missed {
	if c.speaksOf == nil {
		c.speaksOf = []*labelColumn{}
		for _, label := range labelsOf(c.Pod) {
			c.speaksOf = append(c.speaksOf, c.world.column(label))
		}
		c.missed = map[string]*missed{}
	}
	key := c.labelKey[:0]
	if namesNodes(c.Pod) {
		key = append(append(key, n.Name...), '/')
	}
	for _, label := range c.speaksOf {
		value, ok := label.on(n)
		if !ok {
			key = append(key, 0)
			continue
		}
		key = append(binary.AppendUvarint(key, uint64(len(value))+1), value...)
	}
	c.labelKey = key
	if m := c.missed[string(key)]; m != nil {
		return m
	}
	m := &missed{labels: missedLabels(c.Pod, n.Node)}
	c.missed[string(key)] = m
	texts := make([]string, len(m.labels))
	for i, l := range m.labels {
		fact := "label " + l.key + " is absent, " + l.want() + " was asked"
		if has, ok := l.of(n.Node); ok {
			fact = "label " + l.key + " is " + strconv.Quote(has) + ", " + l.want() + " was asked"
		}
		m.facts = append(m.facts, fact)
		texts[i] = l.text()
		if near := c.nearest(l); near != "" {
			texts[i] += fmt.Sprintf(" (nearest: %q)", near)
		}
	}
	m.says = "selector " + strings.Join(texts, ", ") + " does not match"
	if a := requiredAffinity(c.Pod); a != nil && len(a.NodeSelectorTerms) > 1 && slices.ContainsFunc(m.labels, func(l missedLabel) bool { return !l.inSelector }) {
		m.says += ", nor its alternatives"
	}
	return m
}

// labelsOf lists the labels that the pod's selector and its required affinity speak of.
func labelsOf(pod *corev1.Pod) []string {
	out := slices.AppendSeq([]string{}, maps.Keys(pod.Spec.NodeSelector))
	if a := requiredAffinity(pod); a != nil {
		for _, t := range a.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				out = append(out, e.Key)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func requiredAffinity(pod *corev1.Pod) *corev1.NodeSelector {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// nodeMatches says whether the pod's node selector and required node affinity
// accept the node.
func (c *Case) nodeMatches(n *nodeView) bool {
	if c.affinity == nil {
		required := nodeaffinity.GetRequiredNodeAffinity(c.Pod)
		c.affinity = &required
	}
	ok, err := c.affinity.Match(n.Node)
	return err == nil && ok
}

// missedLabels lists the requirements of the selector, and of the affinity's term that
// comes nearest, that the node does not meet.
func missedLabels(pod *corev1.Pod, n *corev1.Node) []missedLabel {
	var out []missedLabel
	for key, want := range pod.Spec.NodeSelector {
		if value, ok := n.Labels[key]; !ok || value != want {
			out = append(out, missedLabel{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{want}}, key: key, inSelector: true})
		}
	}
	slices.SortFunc(out, func(a, b missedLabel) int { return strings.Compare(a.key, b.key) })
	return append(out, missedTerm(requiredAffinity(pod), n)...)
}

// nearest finds the value of the label, among the cluster's nodes, that is most
// like the wanted one, or comes closest to the bound; empty when no node has the label.
func (c *Case) nearest(m missedLabel) string {
	best, bestScore := "", -1
	for _, value := range c.world.column(m.key).distinct {
		for _, want := range m.Values {
			score := likeness(value, want)
			switch m.Operator {
			case corev1.NodeSelectorOpGt:
				score = atoi(value)
			case corev1.NodeSelectorOpLt:
				score = math.MaxInt - atoi(value)
			case corev1.NodeSelectorOpNotIn:
				return ""
			}
			if score > bestScore {
				best, bestScore = value, score
			}
		}
	}
	return best
}

// labelColumn is what all nodes have of one label, read from their maps once for all
// incidents.
type labelColumn struct {
	of       []*string // by nodeView.at; nil where a node lacks it
	distinct []string  // as they come by the names of the nodes
}

func (l *labelColumn) on(n *nodeView) (value string, ok bool) {
	if v := l.of[n.at]; v != nil {
		return *v, true
	}
	return "", false
}

func (w *world) column(label string) *labelColumn {
	if l := w.columns[label]; l != nil {
		return l
	}
	nodes := w.sortedNodes()
	l := &labelColumn{of: make([]*string, len(nodes))}
	met := map[string]*string{}
	for i, n := range nodes {
		value, ok := n.Labels[label]
		if !ok {
			continue
		}
		if met[value] == nil {
			met[value] = &value
			l.distinct = append(l.distinct, value)
		}
		l.of[i] = met[value]
	}
	w.columns[label] = l
	return l
}

// likeness counts the leading letters and digits two label values share,
// whatever the case and the punctuation between them.
func likeness(a, b string) int {
	a, b = plain(a), plain(b)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(s))
}
