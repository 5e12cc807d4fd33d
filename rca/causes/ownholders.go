package causes

import (
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
)

// HeldByOwn says whether all who hold what the pod asks, on the nodes that a cause is told of, are pods of its own workload.
func HeldByOwn(c *Case, id diagnosis.CauseID) bool {
	held := false
	for _, j := range c.Judged {
		n := c.Cluster.Nodes[j.Name]
		if n == nil || !slices.ContainsFunc(j.Blockers, func(b diagnosis.Blocker) bool { return b.Cause == id }) {
			continue
		}
		for _, p := range n.Pods {
			for _, a := range c.Asks {
				if q := n.Requests[p][a.Resource]; q.IsZero() {
					continue
				}
				if c.Cluster.WorkloadOf(p) != c.Incident.Workload {
					return false
				}
				held = true
			}
		}
	}
	return held
}
