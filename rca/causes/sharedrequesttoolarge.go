package causes

import "github.com/unpend/unpend/rca/diagnosis"

// sharedRequestTooLarge: the device plugin refuses more than one share
// (failRequestsGreaterThanOne), which only the kubelet hears.
var sharedRequestTooLarge = PodRule{
	ID: diagnosis.SharedRequestTooLarge,
	Tell: func(c *Case) *finding {
		reason, evidence, ok := c.refusedBy()
		if !ok || reason != unexpectedAdmission || !tooManyShares(c.Refusal.Message) {
			return nil
		}
		return &finding{diagnosis.Proven, "more than one share of a GPU was asked for, the device plugin gives one", evidence}
	},
}
