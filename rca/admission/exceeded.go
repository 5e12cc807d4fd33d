package admission

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Exceeded tells of quotas, with the words of a headline: by the arithmetic of the API server's quota admission on the
// quota's own status, the next pod does not fit. What the refusal says proves
// nothing: the quota may have been raised since.
func (c *Refused) Exceeded() (f *view.Finding, words string) {
	if c.Next() == nil {
		return nil, ""
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
		evidence = append(evidence, q.Evidence(c.askedClaims)...)
	}
	if len(says) > 0 {
		return c.told(certainty, strings.Join(says, "; "), evidence), words
	}
	if f := c.unreadSays("ResourceQuota", "exceeded quota: "); f != nil {
		return f, "a quota refuses it"
	}
	return nil, ""
}

// Refusing are the quotas that do not take the next pod.
func (c *Refused) Refusing() []Quota {
	var out []Quota
	for _, q := range Quotas(c.Cluster.State, c.Next(), nil, nil) {
		if q.Demand != "" || len(q.Exceeded()) > 0 {
			out = append(out, q)
		}
	}
	return out
}
