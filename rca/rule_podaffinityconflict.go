package rca

import "strings"

// podAffinityConflict is what the InterPodAffinity plugin refuses: it judges the
// pods that run, not labels.
var podAffinityConflict = Rule{ID: PodAffinityConflict, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if b.Plugin != "InterPodAffinity" {
		return nil
	}
	f := &finding{Proven, "pod (anti-)affinity rules leave it out", []Evidence{{n.ref(), b.Reason}}}
	_, _, texts := c.unmetTerms(n)
	for _, t := range texts {
		f.evidence = append(f.evidence, Evidence{c.ref(), "has to be " + t})
	}
	if len(texts) > 0 {
		f.says += ": it has to be " + strings.Join(texts, " and ")
	}
	if away, _ := c.standsApart(n); len(away) > 0 {
		f.evidence = append(f.evidence, Evidence{n.ref(), "kept apart from " + podList(away)})
	}
	return f
}}
