package rca

import (
	corev1 "k8s.io/api/core/v1"
)

// nodeNotReady claims the taints that the node controller sets from the node's
// conditions.
var nodeNotReady = Rule{ID: NodeNotReady, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if b.Plugin != "TaintToleration" {
		return nil
	}
	return c.notReady(n)
}}

// passes says of a taint that it goes once the node is ready.
func passes(t corev1.Taint) bool { return ownTaint(t) && t.Key != corev1.TaintNodeUnschedulable }

// notReady finds such a taint, that of a cordon left out.
func (c *Case) notReady(n *nodeView) *finding {
	for _, t := range untolerated(c.Pod, n.Node) {
		if passes(t) {
			return &finding{Proven, "not ready", []Evidence{{n.ref(), "taint " + t.ToString()}}}
		}
	}
	return nil
}
