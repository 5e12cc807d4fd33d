package causes

import (
	"slices"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// claimMadeWithin is how long the resource claim controller may take to make a
// claim from a template.
const claimMadeWithin = 30 * time.Second

// draClaimMissing: the pod is not in the scheduler's queue, so there is no event
// and no condition (dynamicresources.go PreEnqueue, 1.36.3:280). A claim that could
// not be read is not missing.
var draClaimMissing = PodRule{
	ID: diagnosis.DRAClaimMissing,
	Tell: func(c *Case) *finding {
		if c.Claims == nil || len(c.Claims.Missing) == 0 || c.Refusal.Phase != "" && c.Refusal.Phase != "Pending" || c.Cluster.State.Unread["ResourceClaim"] != "" {
			return nil
		}
		st := c.Cluster.State
		if st.Live && st.Now.Sub(c.Incident.Since) < claimMadeWithin {
			return nil
		}
		f := &finding{Certainty: diagnosis.Proven, Says: c.Claims.Missing[0].Says}
		for _, m := range c.Claims.Missing {
			f.Evidence = append(f.Evidence, diagnosis.Fact(m.Ref, m.Fact, slices.Clone(m.Claims)...))
		}
		return f
	},
}

// draClaimMissingHere gives the cause to the scheduler's refusal on every node.
var draClaimMissingHere = Rule{ID: diagnosis.DRAClaimMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRAClaimMissing {
		return nil
	}
	return draClaimMissing.Tell(c)
}}
