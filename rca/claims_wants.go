package rca

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// ClaimedDevices is one request for devices that a pod's claim makes, for people. Of
// a claim that is not there only its name is known.
type ClaimedDevices struct {
	// Claim is "ResourceClaim name" or, where it is made from one,
	// "ResourceClaimTemplate name".
	Claim string `json:"claim"`
	Class string `json:"class,omitempty"`
	Count int64  `json:"count"` // 0: all that match
	// Selectors are the clauses of the request's own selectors, in short.
	Selectors []string `json:"selectors,omitempty"`
	// Others counts the alternatives that would do instead, where this is the first.
	Others int `json:"others,omitempty"`
}

// claimed is what the pod's claims ask for, in the pod's order.
func (v *claimView) claimed() []ClaimedDevices {
	var out []ClaimedDevices
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
		if claim == nil || !slices.Contains(v.own, claim) {
			out = append(out, ClaimedDevices{Claim: called})
			continue
		}
		out = append(out, v.requested(claim, called)...)
	}
	return out
}

// shortest is a clause that names properties by their last name alone.
func shortest(text string) string {
	if _, ok := comparisonOf(text); ok {
		return short(text)
	}
	return short(reference.ReplaceAllStringFunc(text, func(m string) string {
		return propertyOf(reference.FindStringSubmatch(m)).name
	}))
}

func (v *claimView) requested(claim *resourcev1.ResourceClaim, called string) []ClaimedDevices {
	var out []ClaimedDevices
	for _, a := range v.asks {
		switch {
		case a.claim != claim:
		case a.sub > 0:
			out[len(out)-1].Others++
		default:
			d := ClaimedDevices{Claim: called, Class: a.class, Count: a.count}
			for _, s := range a.selectors {
				if s.CEL == nil {
					continue
				}
				for _, text := range clauses(s.CEL.Expression) {
					d.Selectors = append(d.Selectors, shortest(text))
				}
			}
			out = append(out, d)
		}
	}
	return out
}
