package rca

// kubeletAdmissionRefused takes the kubelet's other refusals.
var kubeletAdmissionRefused = PodRule{ID: KubeletAdmissionRefused, Tell: func(c *Case) *finding {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason == topologyAffinity || reason == unexpectedAdmission && tooManyShares(c.refusal.Message) {
		return nil
	}
	return &finding{Proven, "the kubelet refused it at admission: " + reason, evidence}
}}
