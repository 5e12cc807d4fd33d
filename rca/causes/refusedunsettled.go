package causes

import (
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// refusedUnsettled takes the refusals that no object read here explains: a webhook,
// a quota that has room again, something that was not read.
var refusedUnsettled = PodRule{
	ID:      diagnosis.Unknown,
	refusal: true,
	Tell: func(c *Case) *finding {
		if !c.Unborn || c.Suspended() || slices.ContainsFunc(c.Own, func(r PodRule) bool {
			return !r.Aside && slices.Contains([]diagnosis.CauseID{diagnosis.QuotaExceeded, diagnosis.LimitRangeViolated, diagnosis.InvalidGPURequest}, r.ID)
		}) {
			return nil
		}
		says := "the API server refused its pods, and nothing that was read says why; ruled out: quotas, LimitRanges, requests and limits of devices"
		if text := c.refusedSays(); text != "" {
			says += "; it said: " + view.Cut(text, 160)
		}
		return c.told(diagnosis.Possible, says, nil)
	},
}
