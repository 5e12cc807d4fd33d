package causes

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// topologySpreadConflict names the constraints that may not be broken.
var topologySpreadConflict = Rule{ID: diagnosis.TopologySpreadConflict, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "PodTopologySpread" {
		return nil
	}
	var unmet []diagnosis.Claim
	hard, evidence := 0, []diagnosis.Evidence{{}}
	for _, s := range c.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == "DoNotSchedule" {
			hard++
			unmet = n.Labelled(s.TopologyKey)
			if _, has := n.Labels[s.TopologyKey]; has {
				unmet = c.ofPod(diagnosis.That("skew["+s.TopologyKey+","+n.Name+"]", "", diagnosis.AtLeast, strconv.Itoa(int(s.MaxSkew)+1)))
			}
			evidence = append(evidence, diagnosis.Fact(c.podRef(), fmt.Sprintf("spread over %s with at most %d apart; the node has %s=%q", s.TopologyKey, s.MaxSkew, s.TopologyKey, n.Labels[s.TopologyKey]),
				append(c.ofPod(diagnosis.That("spec.topologySpreadConstraints[topologyKey="+s.TopologyKey+"].maxSkew", "", diagnosis.Is, strconv.Itoa(int(s.MaxSkew)))), n.Labelled(s.TopologyKey)...)...))
		}
	}
	if hard > 1 {
		unmet = nil // which of them it is the scheduler does not say
	}
	evidence[0] = diagnosis.Fact(n.Ref(), b.Reason, unmet...)
	return &finding{diagnosis.Proven, "topology spread leaves it out", evidence}
}}
