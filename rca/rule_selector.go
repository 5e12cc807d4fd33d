package rca

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/whatif"
)

// nodeSelectorMismatch names the key that does not match and the nearest value
// that some node has.
var nodeSelectorMismatch = Rule{ID: NodeSelectorMismatch, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	if b.Plugin != "NodeAffinity" && !strings.Contains(b.Reason, "[NodeAffinity]") {
		return nil
	}
	if c.nodeMatches(n) {
		return nil
	}
	missed := missedLabels(c.Pod, n.Node)
	if len(missed) == 0 {
		return &finding{Proven, "node affinity does not match", []Evidence{{n.ref(), "the required node affinity does not match its labels"}}}
	}
	evidence, ref := make([]Evidence, len(missed)), n.ref()
	for i, m := range missed {
		fact := "label " + m.key + " is absent, " + m.want() + " was asked"
		if has, ok := n.Labels[m.key]; ok {
			fact = "label " + m.key + " is " + strconv.Quote(has) + ", " + m.want() + " was asked"
		}
		evidence[i] = Evidence{ref, fact}
	}
	return &finding{Proven, c.mismatch(missed), evidence}
}}

// mismatch says which labels do not match, and what comes nearest: the same of all nodes
// that miss the same.
func (c *Case) mismatch(missed []missedLabel) string {
	key := make([]byte, 0, 64)
	for _, m := range missed {
		key = append(append(append(append(key, m.key...), 0), m.want()...), 0)
	}
	if says, known := c.mismatches[string(key)]; known {
		return says
	}
	texts := make([]string, len(missed))
	for i, m := range missed {
		texts[i] = m.key + "=" + m.want()
		if near := c.nearest(m); near != "" {
			texts[i] += fmt.Sprintf(" (nearest: %q)", near)
		}
	}
	says := "selector " + strings.Join(texts, ", ") + " does not match"
	if c.mismatches == nil {
		c.mismatches = map[string]string{}
	}
	c.mismatches[string(key)] = says
	return says
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

// missedLabel is a label requirement a node does not meet.
type missedLabel struct {
	key    string
	values []string // wanted, one of them
	// inSelector tells spec.nodeSelector from required node affinity.
	inSelector bool
}

func (m missedLabel) want() string {
	if len(m.values) == 0 {
		return "any value"
	}
	return strings.Join(m.values, "|")
}

// missedLabels lists the requirements of the selector, and of the affinity's
// first term, that the node does not meet.
func missedLabels(pod *corev1.Pod, n *corev1.Node) []missedLabel {
	var out []missedLabel
	for key, want := range pod.Spec.NodeSelector {
		if value, ok := n.Labels[key]; !ok || value != want {
			out = append(out, missedLabel{key, []string{want}, true})
		}
	}
	slices.SortFunc(out, func(a, b missedLabel) int { return strings.Compare(a.key, b.key) })
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return out
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 {
		return out // several terms are alternatives: no single key is to blame
	}
	for _, e := range terms[0].MatchExpressions {
		value, ok := n.Labels[e.Key]
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			if !slices.Contains(e.Values, value) {
				out = append(out, missedLabel{e.Key, e.Values, false})
			}
		case corev1.NodeSelectorOpExists:
			if !ok {
				out = append(out, missedLabel{e.Key, nil, false})
			}
		}
	}
	return out
}

// nearest finds the value of the label, among the cluster's nodes, that is most
// like the wanted one; empty when no node has the label.
func (c *Case) nearest(m missedLabel) string {
	best, bestScore := "", -1
	for _, value := range c.world.valuesOf(m.key) {
		for _, want := range m.values {
			if score := likeness(value, want); score > bestScore {
				best, bestScore = value, score
			}
		}
	}
	return best
}

// valuesOf lists the values that a label has, as they come by the names of the nodes. It
// is worked out once for all incidents.
func (w *world) valuesOf(key string) []string {
	values, known := w.values[key]
	if known {
		return values
	}
	met := map[string]bool{}
	for _, n := range w.sortedNodes() {
		if value, ok := n.Labels[key]; ok && !met[value] {
			met[value] = true
			values = append(values, value)
		}
	}
	w.values[key] = values
	return values
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
