package causes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// nodeNotReady claims the taints that the node controller sets from the node's
// conditions.
var nodeNotReady = Rule{ID: diagnosis.NodeNotReady, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if b.Plugin != "TaintToleration" {
		return nil
	}
	return c.notReady(n)
}}

// Passing says of a taint that it goes once the node is ready.
func Passing(t corev1.Taint) bool { return OwnTaint(t) && t.Key != corev1.TaintNodeUnschedulable }

// notReady finds such a taint, that of a cordon left out.
func (c *Case) notReady(n *view.Node) *finding {
	for _, t := range Untolerated(c.Pod, n.Node) {
		if Passing(t) {
			return &finding{diagnosis.Proven, "not ready", []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "taint "+t.ToString(), c.untolerated(n, t)...)}}
		}
	}
	return nil
}
