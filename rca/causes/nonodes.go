package causes

import "github.com/unpend/unpend/rca/diagnosis"

// noNodes: nodes were read, and there is none.
var noNodes = PodRule{
	ID: diagnosis.NoNodes,
	Tell: func(c *Case) *finding {
		if len(c.Cluster.State.Nodes) > 0 || c.Cluster.State.Unread["Node"] != "" {
			return nil
		}
		return &finding{diagnosis.Proven, "the cluster has no node", []diagnosis.Evidence{diagnosis.Fact("Node", "the list is empty", diagnosis.That("", "", diagnosis.Absent, "").Of("Node/*"))}}
	},
}
