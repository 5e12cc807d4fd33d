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
	changes: func(*Case) []change {
		return []change{{kind: ScaleNodePool, manual: true, risk: "low", title: "add a node with such GPUs to the cluster", untestable: "the node is not there yet",
			commands: []string{"kubectl get nodes", "# then scale a node pool with the cloud's or the autoscaler's own command"}}}
	},
}
