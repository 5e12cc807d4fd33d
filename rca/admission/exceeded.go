package admission

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

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
		said, given := c.explained(q)
		says = append(says, said)
		if q.Counted {
			certainty = diagnosis.Likely
		}
		if q.Beyond() {
			words = "asks more than its quota allows"
		} else if q.UsedUp() && words != "asks more than its quota allows" {
			words = "its quota is used up"
		}
		evidence = append(evidence, given...)
	}
	if len(says) > 0 {
		return c.told(certainty, strings.Join(says, "; "), evidence), words
	}
	if f := c.unreadSays("ResourceQuota", "exceeded quota: "); f != nil {
		return f, "a quota refuses it"
	}
	return nil, ""
}

// explained is what a quota refuses, with what of that a LimitRange's defaults ask and nobody has written.
func (c *Refused) explained(q Quota) (says string, evidence []diagnosis.Evidence) {
	says = q.Says()
	asked := map[corev1.ResourceName][]diagnosis.Claim{}
	owner := c.All[0].Owner
	for _, name := range q.Exceeded() {
		asked[name] = c.Asked(name)
		g := c.given(q, name)
		if g == nil {
			continue
		}
		asked[name] = append(asked[name], g.claim())
		if !strings.Contains(says, g.Says()) {
			says += "; " + g.Says()
		}
		evidence = append(evidence, g.tell(c.Cluster.Template(owner), view.ObjectRef(owner.Kind, owner.Namespace, owner.Name))...)
	}
	return says, append(q.Evidence(func(name corev1.ResourceName) []diagnosis.Claim { return asked[name] }), evidence...)
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
