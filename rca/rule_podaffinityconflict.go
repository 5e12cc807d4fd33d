package rca

// podAffinityConflict is what the InterPodAffinity plugin refuses: it judges the
// pods that run, not labels.
var podAffinityConflict = Rule{ID: PodAffinityConflict, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	if b.Plugin != "InterPodAffinity" {
		return nil
	}
	return &finding{Proven, "pod (anti-)affinity rules leave it out", []Evidence{{n.ref(), b.Reason}}}
}}
