package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// ofLayout is the rule of one reason why a node's GPUs are not laid out as the pod needs them,
// which is read in a room of its own. That nobody carries out what the node's label asks for is
// told beside what its GPUs lack.
func ofLayout(id diagnosis.CauseID, tell func(*view.Cluster, *view.Node, *layouts.Short) *view.Finding) Rule {
	return Rule{ID: id, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		f := found(tell(c.Cluster, n, &b.Short))
		if f != nil && id == diagnosis.MIGLayoutMismatch {
			f.beside(stack.Of(c.Cluster).LayoutUnread(n))
		}
		return f
	}}
}
