package terms

import (
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// missedClaims are what the pod wants of a label, and what nodes like this one have; whose
// evidence it becomes is the node.
func (c *Labels) missedClaims(n *view.Node, l MissedLabel) []diagnosis.Claim {
	path := "spec.nodeSelector[" + l.Key + "]"
	if !l.InSelector {
		list := "matchExpressions"
		if l.ByName {
			list = "matchFields"
		}
		path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[" + strconv.Itoa(l.Term) + "]." + list + "[" + strconv.Itoa(l.At) + "].values"
	}
	var wanted []diagnosis.Claim
	for _, v := range l.Values {
		wanted = append(wanted, diagnosis.That(path, "", diagnosis.Is, v))
	}
	has, ok := l.Of(n.Node)
	switch {
	case l.ByName:
		return append(c.Claims(wanted...), diagnosis.That("metadata.name", "", diagnosis.Is, has))
	case ok:
		return append(c.Claims(wanted...), diagnosis.That(diagnosis.Labels, l.Key, diagnosis.Is, has))
	}
	return append(c.Claims(wanted...), diagnosis.That(diagnosis.Labels, l.Key, diagnosis.Absent, ""))
}

// Counted claims of the pod on how many nodes a sentence of Tell's is so; false where it is about no labels.
func (c *Labels) Counted(says string, nodes int) (diagnosis.Claim, bool) {
	return diagnosis.That(diagnosis.Missing, strings.Join(c.said[says], "|"), diagnosis.Is, strconv.Itoa(nodes)), len(c.said[says]) > 0
}

// listed are requirements by their keys, those of an affinity behind the number of its term.
func listed(missed []MissedLabel) string {
	keys := make([]string, len(missed))
	for i, l := range missed {
		if keys[i] = l.Key; !l.InSelector {
			keys[i] = strconv.Itoa(l.Term) + ":" + l.Key
		}
	}
	return strings.Join(keys, ",")
}
