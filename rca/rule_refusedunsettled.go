package rca

import (
	"slices"
)

// refusedUnsettled takes the refusals that no object read here explains: a webhook,
// a quota that has room again, something that was not read.
var refusedUnsettled = PodRule{
	ID:      Unknown,
	refusal: true,
	Tell: func(c *Case) *finding {
		if !c.unborn || slices.ContainsFunc(c.own, func(r PodRule) bool {
			return !r.Aside && slices.Contains([]CauseID{QuotaExceeded, LimitRangeViolated, InvalidGPURequest}, r.ID)
		}) {
			return nil
		}
		says := "the API server refused its pods, and what was read would not; ruled out: quotas, LimitRanges, requests and limits of devices"
		if text := c.refusedSays(); text != "" {
			says += "; it said: " + cut(text, 160)
		}
		return c.told(Possible, says, nil)
	},
}
