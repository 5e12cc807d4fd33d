package rca

import (
	"strings"
)

// quotaExceeded: by the arithmetic of the API server's quota admission on the
// quota's own status, the next pod does not fit. What the refusal says proves
// nothing: the quota may have been raised since.
var quotaExceeded = PodRule{
	ID:      QuotaExceeded,
	refusal: true,
	Tell: func(c *Case) *finding {
		if c.next() == nil {
			return nil
		}
		var says []string
		var evidence []Evidence
		certainty := Proven
		for _, q := range c.refusing() {
			if q.demand != "" {
				says = append(says, q.demandSays())
			} else {
				says = append(says, q.says())
			}
			if q.counted {
				certainty = Likely
			}
			evidence = append(evidence, q.evidence()...)
		}
		if len(says) > 0 {
			return c.told(certainty, strings.Join(says, "; "), evidence)
		}
		if strings.Contains(c.refusedSays(), "insufficient quota to") {
			// The API server's own configuration wants a quota to exist: no object tells that.
			return c.told(Possible, "the API server wants a quota that covers it: "+cut(c.refusedSays(), 160), nil)
		}
		return c.unreadSays("ResourceQuota", "exceeded quota: ", "failed quota: ", "status unknown for quota: ")
	},
}

// refusing are the quotas that do not take the next pod.
func (c *Case) refusing() []quotaView {
	var out []quotaView
	for _, q := range c.quotas(c.next(), nil, nil) {
		if q.demand != "" || len(q.short()) > 0 {
			out = append(out, q)
		}
	}
	return out
}
