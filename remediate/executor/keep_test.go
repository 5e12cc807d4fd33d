package executor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A person who wants the node closed when we are done says so by an annotation: kubectl
// cordon writes nothing to a node that is cordoned.
func TestKeepCordoned(t *testing.T) {
	for _, how := range []string{succeeds, fails} {
		t.Run(how, func(t *testing.T) {
			c := newCell(t)
			node, rem := c.approved(t)
			c.on["set nvidia.com/mig.config="] = func() {
				c.editNode(t, node, func(n *corev1.Node) { n.Annotations[diagnosis.KeepCordoned] = "true" })
			}
			rem = c.carriedOut(t, rem.Name, c.goes(how, node))
			if ended(t, rem, v1alpha1.Failed); how == succeeds {
				ended(t, rem, v1alpha1.Failed, "node "+node+" has the annotation unpend.dev/keep-cordoned=true: its layout is made, it stays cordoned")
			}
			c.closed(t, node)
			c.noLocks(t)
		})
	}
}
