package devices

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// InUseOn says of a node that others hold the devices which would serve the claims: those of the node or, where it has none
// that match, those of other nodes.
func (v *Claims) InUseOn(n *view.Node) (string, []diagnosis.Evidence) {
	var evidence []diagnosis.Evidence
	says, orphans := "devices that match exist, all are allocated", v.Orphans(n.Name)
	if !v.would[n.Name] {
		says = "no device there matches"
		if v.allHeld() {
			says += ", and all that do elsewhere are allocated"
		}
	} else if len(orphans) > 0 {
		says += ", " + orphansText(orphans)
		for _, o := range orphans[:min(len(orphans), MaxHolderFacts)] {
			evidence = append(evidence, diagnosis.Fact("ResourceClaim/"+o.Claim.Namespace+"/"+o.Claim.Name, o.Text(), o.Claims()...))
		}
	}
	for _, a := range v.Asks {
		evidence = append(evidence, v.heldOn(n, a)...)
	}
	evidence = append(evidence, v.Sharing(n.Name)...)
	for _, claim := range v.Own {
		if claim.Status.Allocation != nil {
			evidence = append(evidence, diagnosis.Fact("ResourceClaim/"+claim.Namespace+"/"+claim.Name, "is allocated already"+v.UsedBy(claim), diagnosis.That("status.allocation", "", diagnosis.Exists, "")))
		}
	}
	return says, evidence
}

// allHeld says whether every device that matches a request is allocated to a claim by itself.
func (v *Claims) allHeld() bool {
	return !slices.ContainsFunc(v.Asks, func(a *Ask) bool {
		return slices.ContainsFunc(a.matching, func(d *Device) bool { return v.Inventory.Holders[d.ID] == nil })
	})
}

// heldOn tells which devices of the node match a request, and which claims have them.
func (v *Claims) heldOn(n *view.Node, a *Ask) []diagnosis.Evidence {
	var names []string
	var claims []diagnosis.Claim
	var evidence []diagnosis.Evidence
	for _, d := range v.ByNode[n.Name] {
		if !a.Readings[d].Fits {
			continue
		}
		if names = append(names, d.ID.Name); len(names) > MaxHolderFacts {
			continue
		}
		there := diagnosis.That("spec.devices[name="+d.ID.Name+"]", "", diagnosis.Exists, "")
		claims = append(claims, there.Of(d.Ref()))
		if claim := v.Inventory.Holders[d.ID]; claim != nil {
			evidence = append(evidence, diagnosis.Fact(d.Ref(), "device "+d.ID.Name+" is allocated to ResourceClaim "+claim.Namespace+"/"+claim.Name+v.UsedBy(claim),
				there, diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name), d.ID.AllocatedTo(claim)))
		}
	}
	return append(evidence, diagnosis.Fact(n.Ref(), a.MatchText(names), append(append(claims, a.Claims()...), OfferedOn(v.asker.Cluster.State.ResourceSlices, n.Name)...)...))
}

// orphansText says of claims that they hold devices for pods that are not there.
func orphansText(orphans []Orphan) string {
	if len(orphans) == 1 {
		return "some to a ResourceClaim whose pods are not there any more"
	}
	return "some to ResourceClaims whose pods are not there any more"
}

// maxNamed is how many devices that match are named.
const maxNamed = 3

// MatchText names the devices that match a request; of many it says how many.
func (a *Ask) MatchText(names []string) string {
	text := fmt.Sprintf("%d devices match request %s", len(names), a.Name)
	switch {
	case len(names) == 0:
		text = "no device there matches request " + a.Name
	case len(names) == 1:
		text = "device " + names[0] + " matches request " + a.Name
	case len(names) <= maxNamed:
		text = "devices " + strings.Join(names, ", ") + " match request " + a.Name
	}
	if count := a.CountText(); count != "1" {
		text += ", " + count + " asked"
	}
	return text
}
