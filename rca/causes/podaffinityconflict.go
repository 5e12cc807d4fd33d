package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// podAffinityConflict is what the InterPodAffinity plugin refuses: it judges the
// pods that run, not labels.
var podAffinityConflict = Rule{ID: diagnosis.PodAffinityConflict, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "InterPodAffinity" {
		return nil
	}
	f := &finding{diagnosis.Proven, "pod (anti-)affinity rules leave it out", []diagnosis.Evidence{{Ref: n.Ref(), Fact: b.Reason}}}
	_, _, texts := c.UnmetTerms(n)
	for _, t := range texts {
		f.evidence = append(f.evidence, diagnosis.Evidence{Ref: c.podRef(), Fact: "has to be " + t})
	}
	if len(texts) > 0 {
		f.says += ": it has to be " + strings.Join(texts, " and ")
	}
	if away, _ := c.StandsApart(n); len(away) > 0 {
		f.evidence = append(f.evidence, diagnosis.Fact(n.Ref(), "kept apart from "+view.PodList(away), running(away)...))
	}
	return f
}}
