package rca

// topologyAlignmentRefused: the kubelet's Topology Manager found no NUMA node with
// all that was asked.
var topologyAlignmentRefused = PodRule{ID: TopologyAlignmentRefused, Tell: func(c *Case) *finding {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason != topologyAffinity {
		return nil
	}
	return &finding{Proven, "the kubelet could not align its devices and CPUs on one NUMA node", evidence}
}}
