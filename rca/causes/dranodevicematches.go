package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draNoDeviceMatches: there are devices, and even if nobody held one none would do.
// Which clause of which selector fails is asked of the scheduler's own CEL
// environment, device by device.
var draNoDeviceMatches = Rule{ID: diagnosis.DRANoDeviceMatches, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRANoDeviceMatches {
		return nil
	}
	f := &finding{Certainty: diagnosis.Proven}
	for _, a := range c.Claims.Asks {
		if says, evidence := c.Claims.Misses(a, n.Name); says != "" {
			if f.Says == "" {
				f.Says = says
			}
			f.Evidence = append(f.Evidence, evidence...)
		}
	}
	here := len(c.Claims.ByNode[n.Name])
	if f.Says == "" {
		f.Says = "no node has devices that match together"
		for _, claim := range c.Claims.Own {
			for _, con := range claim.Spec.Devices.Constraints {
				if con.MatchAttribute != nil {
					f.Evidence = append(f.Evidence, diagnosis.Fact("ResourceClaim/"+claim.Namespace+"/"+claim.Name, "constraint matchAttribute "+string(*con.MatchAttribute), diagnosis.That("spec.devices.constraints[matchAttribute="+string(*con.MatchAttribute)+"]", "", diagnosis.Exists, "")))
				}
			}
		}
		for _, a := range c.Claims.Asks {
			f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), fmt.Sprintf("%d devices match request %s, %s asked", a.MatchingOn(c.Claims, n.Name), a.Name, a.CountText()), a.MatchingClaims(c.Claims, n.Name)...))
		}
	}
	fact := "no device, so none serves the claims"
	if here > 0 {
		fact = fmt.Sprintf("%d devices, none serves the claims", here)
	}
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), fact, devices.OfferedOn(c.Cluster.State.ResourceSlices, n.Name)...))
	return f
}}
