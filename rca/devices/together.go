package devices

import (
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Together is why the devices of a node do not serve the claims though some match each of their requests: more different
// ones are asked than any node has, or none of them keep to the constraints.
func (v *Claims) Together(n *view.Node) (string, []diagnosis.Evidence) {
	says := "no node has devices that match together"
	if asked, _ := v.TooMany(); asked > 0 {
		says = "more different devices are asked at once than any node has that match"
	}
	var evidence []diagnosis.Evidence
	for _, claim := range v.Own {
		for _, con := range claim.Spec.Devices.Constraints {
			if con.MatchAttribute != nil {
				evidence = append(evidence, diagnosis.Fact("ResourceClaim/"+claim.Namespace+"/"+claim.Name, "constraint matchAttribute "+string(*con.MatchAttribute), diagnosis.That("spec.devices.constraints[matchAttribute="+string(*con.MatchAttribute)+"]", "", diagnosis.Exists, "")))
			}
		}
	}
	for _, a := range v.Asks {
		evidence = append(evidence, diagnosis.Fact(n.Ref(), a.MatchText(a.MatchingOn(v, n.Name)), a.MatchingClaims(v, n.Name)...))
	}
	return says, evidence
}

// TooMany is how many devices the pod asks for, each another one, and the most that any node has of those which match one
// of its requests, held or not; zeros where a node has as many, or where no device matches a request at all, one may be given
// more than once, or a request has alternatives, or is no claim's.
func (v *Claims) TooMany() (asked int64, most int) {
	for _, a := range v.Asks {
		if a.Claim == nil || a.Sub >= 0 || a.count == 0 || len(a.matching) == 0 || a.givenUp || a.admin() {
			return 0, 0
		}
		asked += a.count
	}
	for _, on := range v.ByNode {
		match := 0
		for _, d := range on {
			if !slices.ContainsFunc(v.Asks, func(a *Ask) bool { return a.Readings[d].Fits && d.taintOf(a.tolerations) == "" }) {
				continue
			}
			if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
				return 0, 0
			}
			match++
		}
		most = max(most, match)
	}
	if asked <= int64(most) {
		return 0, 0
	}
	return asked, most
}

// admin says whether a request is for administrators, who get devices that others hold.
func (a *Ask) admin() bool {
	x := a.Claim.Spec.Devices.Requests[a.At].Exactly
	return x != nil && x.AdminAccess != nil && *x.AdminAccess
}

// Owners are what the requests of the pod's claims are written in: its templates, or claims.
func (v *Claims) Owners() []string {
	var out []string
	for _, d := range v.Claimed() {
		if !slices.Contains(out, d.Claim) {
			out = append(out, d.Claim)
		}
	}
	return out
}
