package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// quotaExceeded: by the arithmetic of the API server's quota admission on the
// quota's own status, the next pod does not fit. What the refusal says proves
// nothing: the quota may have been raised since.
var quotaExceeded = PodRule{
	ID:      diagnosis.QuotaExceeded,
	refusal: true,
	Tell: func(c *Case) *finding {
		if c.Next() == nil {
			return nil
		}
		var says []string
		var evidence []diagnosis.Evidence
		certainty := diagnosis.Proven
		for _, q := range c.Refusing() {
			if q.Demand != "" {
				says = append(says, q.DemandSays())
			} else {
				says = append(says, q.Says())
			}
			if q.Counted {
				certainty = diagnosis.Likely
			}
			evidence = append(evidence, q.Evidence()...)
		}
		if len(says) > 0 {
			return c.told(certainty, strings.Join(says, "; "), evidence)
		}
		if strings.Contains(c.refusedSays(), "insufficient quota to") {
			// The API server's own configuration wants a quota to exist: no object tells that.
			return c.told(diagnosis.Possible, "the API server wants a quota that covers it: "+view.Cut(c.refusedSays(), 160), nil)
		}
		return c.unreadSays("ResourceQuota", "exceeded quota: ", "failed quota: ", "status unknown for quota: ")
	},
}

// Refusing are the quotas that do not take the next pod.
func (c *Case) Refusing() []admission.Quota {
	var out []admission.Quota
	for _, q := range admission.Quotas(c.Cluster.State, c.Next(), nil, nil) {
		if q.Demand != "" || len(q.Exceeded()) > 0 {
			out = append(out, q)
		}
	}
	return out
}
