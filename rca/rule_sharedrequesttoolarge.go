package rca

// sharedRequestTooLarge: the device plugin refuses more than one share
// (failRequestsGreaterThanOne), which only the kubelet hears.
var sharedRequestTooLarge = PodRule{
	ID: SharedRequestTooLarge,
	Tell: func(c *Case) *finding {
		reason, evidence, ok := c.refusedBy()
		if !ok || reason != unexpectedAdmission || !tooManyShares(c.refusal.Message) {
			return nil
		}
		return &finding{Proven, "more than one share of a GPU was asked for, the device plugin gives one", evidence}
	},
}
