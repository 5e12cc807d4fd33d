package rca

// noNodes: nodes were read, and there is none.
var noNodes = PodRule{
	ID: NoNodes,
	Tell: func(c *Case) *finding {
		if len(c.world.state.Nodes) > 0 || c.world.state.Unread["Node"] != "" {
			return nil
		}
		return &finding{Proven, "the cluster has no node", []Evidence{{"Node", "the list is empty"}}}
	},
}
