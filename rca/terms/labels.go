package terms

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Labels is what the pod asks of the labels and the names of nodes.
type Labels struct {
	view.Subject
	// missed are the labels that do not match so far, by what nodes have of those that
	// the pod speaks of; key is for writing that down.
	missed   map[string]*Missed
	speaksOf []*view.LabelColumn
	key      []byte
	// other are labels of the selector that no node has, by what nodes call them.
	other map[string]string
	// said are the lists of requirements that sentences are about, as claims name them.
	said map[string][]string
	// affinity is the pod's required node affinity, once asked for.
	affinity *nodeaffinity.RequiredNodeAffinity
}

// LabelsOf takes the pod.
func LabelsOf(s view.Subject) *Labels { return &Labels{Subject: s} }

// Tell names the key of a node that does not match and the nearest value that some node has;
// nil where the node is what the pod asks for.
func (c *Labels) Tell(n *view.Node) *view.Finding {
	m := c.On(n)
	if view.RequiredAffinity(c.Pod) == nil && len(m.Labels) == 0 || view.RequiredAffinity(c.Pod) != nil && c.Accepts(n) {
		return nil
	}
	if len(m.Labels) == 0 {
		return view.Found(diagnosis.Proven, "node affinity does not match", diagnosis.Fact(n.Ref(), "the required node affinity does not match its labels", c.Claims(diagnosis.That(diagnosis.Selects, n.Name, diagnosis.Is, "false"))...))
	}
	evidence, ref := make([]diagnosis.Evidence, len(m.facts)), n.Ref()
	for i, fact := range m.facts {
		evidence[i] = diagnosis.Fact(ref, fact, slices.Clone(m.claims[i])...)
	}
	for _, l := range m.Labels {
		if flavor := c.Unmatched(l); flavor != "" {
			evidence = append(evidence, diagnosis.Fact("ResourceFlavor/"+flavor, "its nodeLabels have "+l.Text()+", which Kueue puts into what it admits, and no node has it",
				diagnosis.That("spec.nodeLabels", l.Key, diagnosis.Is, l.Values[0]), diagnosis.That(diagnosis.Labels, l.Key, diagnosis.IsNot, l.Values[0]).Of("Node/*")))
		}
		if class := c.ByClass(l); class != "" {
			evidence = append(evidence, diagnosis.Fact("RuntimeClass/"+class, "its scheduling.nodeSelector has "+l.Text()+", which the API server gives to every pod that names it", diagnosis.That("scheduling.nodeSelector", l.Key, diagnosis.Is, l.Values[0])))
		}
	}
	return view.Found(diagnosis.Proven, m.says, evidence...)
}

// Unmatched is the flavor of Kueue's whose label a selector asks for, where no node has it: to
// take it out of the workload does not last, Kueue puts it in again.
func (c *Labels) Unmatched(l MissedLabel) string {
	if !l.InSelector || len(l.Values) != 1 || c.Cluster.State.Unread["Node"] != "" {
		return ""
	}
	flavor, onNode := c.Cluster.FlavorOf(l.Key, l.Values[0])
	if flavor == nil || onNode {
		return ""
	}
	return flavor.GetName()
}

// Missed is which labels do not match on nodes that have the same of those that the pod
// speaks of, in words, and what of the workload could be changed for them.
type Missed struct {
	Labels []MissedLabel
	facts  []string            // one for each
	claims [][]diagnosis.Claim // what it is made from
	says   string              // with what comes nearest
}

// absent is what no label's value is: like a node's name, one has no slash.
const absent = "/"

// On is worked out once for nodes that have the same of the labels spoken of.
func (c *Labels) On(n *view.Node) *Missed {
	if c.speaksOf == nil {
		c.speaksOf = []*view.LabelColumn{}
		for _, label := range view.LabelsAsked(c.Pod) {
			c.speaksOf = append(c.speaksOf, c.Cluster.Column(label))
		}
		c.other = c.otherNames()
		for _, label := range slices.Sorted(maps.Values(c.other)) {
			c.speaksOf = append(c.speaksOf, c.Cluster.Column(label))
		}
		c.missed, c.said = map[string]*Missed{}, map[string][]string{}
	}
	key := c.key[:0]
	if namesNodes(c.Pod) {
		key = append(append(key, n.Name...), '/')
	}
	for _, label := range c.speaksOf {
		value, ok := label.On(n)
		if !ok {
			value = absent
		}
		key = append(append(key, value...), '/')
	}
	c.key = key
	if m := c.missed[string(key)]; m != nil {
		return m
	}
	m := &Missed{Labels: missedLabels(c.Pod, n.Node)}
	c.missed[string(key)] = m
	c.say(m, n)
	return m
}

// say puts in words what is missed on a node.
func (c *Labels) say(m *Missed, n *view.Node) {
	texts := make([]string, len(m.Labels))
	for i := range m.Labels {
		if m.Labels[i].InSelector {
			m.Labels[i].Other = c.other[m.Labels[i].Key]
		}
		l := m.Labels[i]
		fact := "label " + l.Key + " is absent, " + l.want() + " was asked"
		if has, ok := l.Of(n.Node); ok {
			fact = "label " + l.Key + " is " + strconv.Quote(has) + ", " + l.want() + " was asked"
		}
		m.facts, m.claims = append(m.facts, fact), append(m.claims, c.missedClaims(n, l))
		texts[i] = l.Text()
		if near := c.nearest(l); near != "" {
			texts[i] += fmt.Sprintf(" (nearest: %q)", near)
		} else if l.Other != "" {
			texts[i] += " (nearest: label " + l.Other + "=" + l.Values[0] + ")"
		}
		if class := c.ByClass(l); class != "" {
			texts[i] += " (of RuntimeClass " + class + ")"
		}
	}
	m.says = "selector " + strings.Join(texts, ", ") + " does not match"
	if a := view.RequiredAffinity(c.Pod); a != nil && len(a.NodeSelectorTerms) > 1 && slices.ContainsFunc(m.Labels, func(l MissedLabel) bool { return !l.InSelector }) {
		m.says += ", nor its alternatives"
	}
	if list := listed(m.Labels); !slices.Contains(c.said[m.says], list) {
		c.said[m.says] = append(c.said[m.says], list)
	}
}

// Accepts says whether the pod's node selector and required node affinity
// accept the node.
func (c *Labels) Accepts(n *view.Node) bool {
	if c.affinity == nil {
		required := nodeaffinity.GetRequiredNodeAffinity(c.Pod)
		c.affinity = &required
	}
	ok, err := c.affinity.Match(n.Node)
	return err == nil && ok
}

// missedLabels lists the requirements of the selector, and of the affinity's term that
// comes nearest, that the node does not meet.
func missedLabels(pod *corev1.Pod, n *corev1.Node) []MissedLabel {
	var out []MissedLabel
	for key, want := range pod.Spec.NodeSelector {
		if value, ok := n.Labels[key]; !ok || value != want {
			out = append(out, MissedLabel{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{want}}, Key: key, InSelector: true})
		}
	}
	slices.SortFunc(out, func(a, b MissedLabel) int { return strings.Compare(a.Key, b.Key) })
	return append(out, missedTerm(view.RequiredAffinity(pod), n)...)
}

// nearest finds the value of the label, among the cluster's nodes, that is most
// like the wanted one, or comes closest to the bound; empty when no node has the label, or
// when another node has the very value.
func (c *Labels) nearest(m MissedLabel) string {
	best, bestScore := "", -1
	if len(m.Values) == 1 && m.Values[0] == "" {
		return "" // nothing is like nothing
	}
	if m.Operator == corev1.NodeSelectorOpIn && slices.ContainsFunc(c.Cluster.Column(m.Key).Distinct, func(v string) bool { return slices.Contains(m.Values, v) }) {
		return ""
	}
	for _, value := range c.Cluster.Column(m.Key).Distinct {
		for _, want := range m.Values {
			score := likeness(value, want)
			switch m.Operator {
			case corev1.NodeSelectorOpGt:
				score = wholeNumber(value)
			case corev1.NodeSelectorOpLt:
				score = math.MaxInt - wholeNumber(value)
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

// likeness counts the leading letters and digits two label values share,
// whatever the case and the punctuation between them.
func likeness(a, b string) int {
	a, b = diagnosis.Plain(a), diagnosis.Plain(b)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// wholeNumber reads the value of a label that is compared; 0 for one that is no number.
func wholeNumber(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0
	}
	return n
}
