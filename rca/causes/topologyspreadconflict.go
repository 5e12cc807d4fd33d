package causes

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// topologySpreadConflict names the constraints that the pod would break on the node and may not. Those
// of the scheduler's own configuration are in no object.
var topologySpreadConflict = Rule{ID: diagnosis.TopologySpreadConflict, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "PodTopologySpread" {
		return nil
	}
	var unmet []diagnosis.Claim
	evidence := []diagnosis.Evidence{{}}
	for _, i := range c.Spread.Broken(n) {
		s := c.Pod.Spec.TopologySpreadConstraints[i]
		unmet = append(unmet, unevenly(c, s, n)...)
		evidence = append(evidence, diagnosis.Fact(c.podRef(), fmt.Sprintf("spread over %s with at most %d apart; the node has %s=%q", s.TopologyKey, s.MaxSkew, s.TopologyKey, n.Labels[s.TopologyKey]),
			append(c.ofPod(diagnosis.That("spec.topologySpreadConstraints[topologyKey="+s.TopologyKey+"].maxSkew", "", diagnosis.Is, strconv.Itoa(int(s.MaxSkew)))), n.Labelled(s.TopologyKey)...)...))
	}
	evidence[0] = diagnosis.Fact(n.Ref(), b.Reason, unmet...)
	return &finding{diagnosis.Proven, "topology spread leaves it out", evidence}
}}

// unevenly claims how a constraint would be broken on a node: its part would be too full, or it is of
// none.
func unevenly(c *Case, s corev1.TopologySpreadConstraint, n *view.Node) []diagnosis.Claim {
	if _, has := n.Labels[s.TopologyKey]; !has {
		return n.Labelled(s.TopologyKey)
	}
	return c.ofPod(diagnosis.That("skew["+s.TopologyKey+","+n.Name+"]", "", diagnosis.AtLeast, strconv.Itoa(int(s.MaxSkew)+1)))
}
