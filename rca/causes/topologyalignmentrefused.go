package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
)

// topologyAlignmentRefused: the kubelet's Topology Manager found no NUMA node with
// all that was asked.
var topologyAlignmentRefused = PodRule{ID: diagnosis.TopologyAlignmentRefused, Tell: func(c *Case) *finding {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason != topologyAffinity {
		return nil
	}
	return &finding{diagnosis.Proven, "the kubelet could not align its devices and CPUs on one NUMA node", evidence}
}}
