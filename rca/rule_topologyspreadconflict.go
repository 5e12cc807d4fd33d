package rca

import (
	"fmt"
)

// topologySpreadConflict names the constraints that may not be broken.
var topologySpreadConflict = Rule{ID: TopologySpreadConflict, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if b.Plugin != "PodTopologySpread" {
		return nil
	}
	evidence := []Evidence{{n.ref(), b.Reason}}
	for _, s := range c.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == "DoNotSchedule" {
			evidence = append(evidence, Evidence{c.ref(), fmt.Sprintf("spread over %s with at most %d apart; the node has %s=%q", s.TopologyKey, s.MaxSkew, s.TopologyKey, n.Labels[s.TopologyKey])})
		}
	}
	return &finding{Proven, "topology spread leaves it out", evidence}
}}
