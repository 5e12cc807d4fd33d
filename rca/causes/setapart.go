package causes

import (
	"slices"

	"github.com/unpend/unpend/rca/terms"
)

// SetApart says whether a node is kept for the cluster itself, and from the pod.
func SetApart(c *Case, node string) bool {
	n := c.Node(node)
	return n != nil && slices.ContainsFunc(terms.Untolerated(c.Pod, n.Node), terms.SetApart)
}
