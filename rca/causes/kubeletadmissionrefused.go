package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
)

// kubeletAdmissionRefused takes the kubelet's other refusals.
var kubeletAdmissionRefused = PodRule{ID: diagnosis.KubeletAdmissionRefused, Tell: func(c *Case) *finding {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason == topologyAffinity || reason == unexpectedAdmission && tooManyShares(c.Refusal.Message) {
		return nil
	}
	return &finding{diagnosis.Proven, "the kubelet refused it at admission: " + reason, evidence}
}}
