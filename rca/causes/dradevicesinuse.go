package causes

import (
	"fmt"
	"strings"

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
	if all := v.AllOrphans(); len(all) > 0 {
		f.Says += ", " + orphansText(all)
		orphans := v.Orphans(n.Name)
		for _, o := range orphans[:min(len(orphans), devices.MaxHolderFacts)] {
			f.Evidence = append(f.Evidence, diagnosis.Fact("ResourceClaim/"+o.Claim.Namespace+"/"+o.Claim.Name, o.Text(), o.Claims()...))
		}
	}
	for _, a := range v.Asks {
		matching, names := 0, []string{}
		var claims []diagnosis.Claim
		for _, d := range v.ByNode[n.Name] {
			if !a.Readings[d].Fits {
				continue
			}
			matching++
			names = append(names, d.ID.Name)
			if matching <= devices.MaxHolderFacts {
				claims = append(claims, diagnosis.That("spec.devices[name="+d.ID.Name+"]", "", diagnosis.Exists, "").Of(d.Ref()))
			}
			if claim := v.Inventory.Holders[d.ID]; claim != nil && matching <= devices.MaxHolderFacts {
				f.Evidence = append(f.Evidence, diagnosis.Fact(d.Ref(), "device "+d.ID.Name+" is allocated to ResourceClaim "+claim.Namespace+"/"+claim.Name+v.UsedBy(claim),
					diagnosis.That("spec.devices[name="+d.ID.Name+"]", "", diagnosis.Exists, ""), diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name), d.ID.AllocatedTo(claim)))
			}
		}
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), matchText(a, names), append(append(claims, a.Claims()...), devices.OfferedOn(c.Cluster.State.ResourceSlices, n.Name)...)...))
	}
	f.Evidence = append(f.Evidence, v.Sharing(n.Name)...)
	for _, claim := range v.Own {
		if claim.Status.Allocation != nil {
			f.Evidence = append(f.Evidence, diagnosis.Fact("ResourceClaim/"+claim.Namespace+"/"+claim.Name, "is allocated already"+v.UsedBy(claim), diagnosis.That("status.allocation", "", diagnosis.Exists, "")))
		}
	}
	return f
}}

// orphansText says of claims that they hold devices for pods that are not there.
func orphansText(orphans []devices.Orphan) string {
	if len(orphans) == 1 {
		return "some to a ResourceClaim whose pods are not there any more"
	}
	return "some to ResourceClaims whose pods are not there any more"
}

// maxNamed is how many devices that match are named.
const maxNamed = 3

// matchText names the devices that match a request; of many it says how many.
func matchText(a *devices.Ask, names []string) string {
	text := fmt.Sprintf("%d devices match request %s", len(names), a.Name)
	switch {
	case len(names) == 0:
		text = "no device there matches request " + a.Name
	case len(names) == 1:
		text = "device " + names[0] + " matches request " + a.Name
	case len(names) > 1 && len(names) <= maxNamed:
		text = "devices " + strings.Join(names, ", ") + " match request " + a.Name
	}
	if count := a.CountText(); count != "1" {
		text += ", " + count + " asked"
	}
	return text
}
