package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/view"
)

// ofLayout is the rule of one reason why a node's GPUs are not laid out as the pod needs them,
// which is read in a room of its own.
func ofLayout(id diagnosis.CauseID, tell func(*view.Cluster, *view.Node, *layouts.Short) *view.Finding) Rule {
	return Rule{ID: id, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		return found(tell(c.Cluster, n, &b.Short))
	}}
}
