package causes

import (
	"slices"
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
	f := &finding{diagnosis.Proven, "pod (anti-)affinity rules leave it out", []diagnosis.Evidence{diagnosis.Fact(n.Ref(), b.Reason, c.whereItStands(n)...)}}
	unmet, broken, texts := c.UnmetTerms(n)
	terms := slices.Concat(pick(TogetherWith(c.Pod), unmet), pick(ApartFrom(c.Pod), broken)) // as the texts
	for i, t := range texts {
		f.Evidence = append(f.Evidence, diagnosis.Fact(c.podRef(), "has to be "+t, c.ofPod(diagnosis.That("spec.affinity", "", diagnosis.Contains, terms[i].TopologyKey))...))
	}
	if len(texts) > 0 {
		f.Says += ": it has to be " + strings.Join(texts, " and ")
	}
	if away, _ := c.StandsApart(n); len(away) > 0 {
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "kept apart from "+view.PodList(away), running(away)...))
	}
	return f
}}

// pick are the elements at those places.
func pick[T any](of []T, at []int) []T {
	out := make([]T, len(at))
	for i, n := range at {
		out[i] = of[n]
	}
	return out
}
