package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
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
		certainty, words := diagnosis.Proven, "its quota has too little left"
		for _, q := range c.Refusing() {
			if len(q.Exceeded()) == 0 {
				continue
			}
			says = append(says, q.Says())
			if q.Counted {
				certainty = diagnosis.Likely
			}
			if q.Beyond() {
				words = "asks more than its quota allows"
			} else if q.UsedUp() && words != "asks more than its quota allows" {
				words = "its quota is used up"
			}
			evidence = append(evidence, q.Evidence()...)
		}
		if len(says) > 0 {
			c.entitle(diagnosis.QuotaExceeded, words)
			return c.told(certainty, strings.Join(says, "; "), evidence)
		}
		f := c.unreadSays("ResourceQuota", "exceeded quota: ")
		if f != nil {
			c.entitle(diagnosis.QuotaExceeded, "a quota refuses it")
		}
		return f
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
