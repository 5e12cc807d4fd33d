package rca

import (
	"time"
)

// claimMadeWithin is how long the resource claim controller may take to make a
// claim from a template.
const claimMadeWithin = 30 * time.Second

// draClaimMissing: the pod is not in the scheduler's queue, so there is no event
// and no condition (dynamicresources.go PreEnqueue, 1.36.3:280). A claim that could
// not be read is not missing.
var draClaimMissing = PodRule{
	ID: DRAClaimMissing,
	Tell: func(c *Case) *finding {
		if c.claims == nil || len(c.claims.missing) == 0 || c.refusal.Phase != "" && c.refusal.Phase != "Pending" || c.world.state.Unread["ResourceClaim"] != "" {
			return nil
		}
		st := c.world.state
		if st.Live && st.Now.Sub(c.Incident.Since) < claimMadeWithin {
			return nil
		}
		f := &finding{certainty: Proven, says: c.claims.missing[0].says}
		for _, m := range c.claims.missing {
			f.evidence = append(f.evidence, Evidence{m.ref, m.fact})
		}
		return f
	},
}

// draClaimMissingHere gives the cause to the scheduler's refusal on every node.
var draClaimMissingHere = Rule{ID: DRAClaimMissing, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if c.claims.causeOn(n, b.Blocker) != DRAClaimMissing {
		return nil
	}
	return draClaimMissing.Tell(c)
}}
