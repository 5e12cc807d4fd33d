package devices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Claimed is what the pod's claims ask for, in the pod's order.
func (v *Claims) Claimed() []diagnosis.ClaimedDevices {
	var out []diagnosis.ClaimedDevices
	if v == nil {
		return nil
	}
	for i := range v.pod.Spec.ResourceClaims {
		pc := &v.pod.Spec.ResourceClaims[i]
		name, _, err := resourceclaim.Name(v.pod, pc)
		if err == nil && name == nil {
			continue // no claim is needed for it
		}
		called := "claim " + pc.Name
		switch {
		case pc.ResourceClaimTemplateName != nil:
			called = "ResourceClaimTemplate " + *pc.ResourceClaimTemplateName
		case pc.ResourceClaimName != nil:
			called = "ResourceClaim " + *pc.ResourceClaimName
		}
		var claim *resourcev1.ResourceClaim
		if name != nil {
			claim = v.claims[v.pod.Namespace+"/"+*name]
		}
		if claim == nil || !slices.Contains(v.Own, claim) {
			out = append(out, diagnosis.ClaimedDevices{Claim: called})
			continue
		}
		out = append(out, v.requested(claim, called)...)
	}
	return out
}

// shortest is a clause that names properties by their last name alone.
func shortest(text string) string {
	if _, ok := ComparisonOf(text); ok {
		return ShortClause(text)
	}
	return ShortClause(reference.ReplaceAllStringFunc(text, func(m string) string {
		return propertyOf(reference.FindStringSubmatch(m)).Name
	}))
}

func (v *Claims) requested(claim *resourcev1.ResourceClaim, called string) []diagnosis.ClaimedDevices {
	var out []diagnosis.ClaimedDevices
	for _, a := range v.Asks {
		switch {
		case a.Claim != claim:
		case a.Sub > 0:
			out[len(out)-1].Others++
		default:
			d := diagnosis.ClaimedDevices{Claim: called, Class: a.Class, Count: a.count}
			for _, s := range a.selectors {
				if s.CEL == nil {
					continue
				}
				for _, text := range Clauses(s.CEL.Expression) {
					d.Selectors = append(d.Selectors, shortest(text))
				}
			}
			out = append(out, d)
		}
	}
	return out
}
