package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draDevicesInUse: the scheduler's own code would serve the claims if nobody held a
// device. Counters that partitions of one device share are counted by it.
var draDevicesInUse = Rule{ID: diagnosis.DRADevicesInUse, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRADevicesInUse {
		return nil
	}
	v := c.Claims
	f := &finding{Certainty: diagnosis.Proven, Says: "devices that match exist, all are allocated"}
	for _, a := range v.Asks {
		matching := 0
		for _, d := range v.ByNode[n.Name] {
			if !a.Readings[d].Fits {
				continue
			}
			matching++
			if claim := v.Inventory.Holders[d.ID]; claim != nil && matching <= devices.MaxHolderFacts {
				f.Evidence = append(f.Evidence, diagnosis.Fact(d.Ref(), "device "+d.ID.Name+" is allocated to ResourceClaim "+claim.Namespace+"/"+claim.Name+devices.UsedBy(claim),
					diagnosis.That("spec.devices[name="+d.ID.Name+"]", "", diagnosis.Exists, ""), diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name), diagnosis.That("status.allocation", "", diagnosis.Contains, d.ID.Name).Of("ResourceClaim/"+claim.Namespace+"/"+claim.Name)))
			}
		}
		f.Evidence = append(f.Evidence, diagnosis.Evidence{Ref: n.Ref(), Fact: fmt.Sprintf("%d devices match request %s, %s asked", matching, a.Name, a.CountText())})
	}
	f.Evidence = append(f.Evidence, v.Sharing(n.Name)...)
	for _, claim := range v.Own {
		if claim.Status.Allocation != nil {
			f.Evidence = append(f.Evidence, diagnosis.Fact("ResourceClaim/"+claim.Namespace+"/"+claim.Name, "is allocated already"+devices.UsedBy(claim), diagnosis.That("status.allocation", "", diagnosis.Exists, "")))
		}
	}
	return f
}}
