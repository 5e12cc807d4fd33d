package rca

import (
	"fmt"
)

// draDevicesInUse: the scheduler's own code would serve the claims if nobody held a
// device. Counters that partitions of one device share are counted by it.
var draDevicesInUse = Rule{ID: DRADevicesInUse, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if c.claims.causeOn(n, b.Blocker) != DRADevicesInUse {
		return nil
	}
	v := c.claims
	f := &finding{certainty: Proven, says: "devices that match exist, all are allocated"}
	for _, a := range v.asks {
		matching := 0
		for _, d := range v.byNode[n.Name] {
			if !a.readings[d].fits {
				continue
			}
			matching++
			if claim := v.inventory.holders[d.id]; claim != nil && matching <= maxHolderFacts {
				f.evidence = append(f.evidence, Evidence{d.ref(), "device " + d.id.name + " is allocated to ResourceClaim " + claim.Namespace + "/" + claim.Name + usedBy(claim)})
			}
		}
		f.evidence = append(f.evidence, Evidence{n.ref(), fmt.Sprintf("%d devices match request %s, %s asked", matching, a.name, a.countText())})
	}
	f.evidence = append(f.evidence, v.sharing(n.Name)...)
	for _, claim := range v.own {
		if claim.Status.Allocation != nil {
			f.evidence = append(f.evidence, Evidence{"ResourceClaim/" + claim.Namespace + "/" + claim.Name, "is allocated already" + usedBy(claim)})
		}
	}
	return f
}}
