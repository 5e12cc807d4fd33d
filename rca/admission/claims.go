package admission

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// hardIs claims how much the quota allows.
func (v *Quota) hardIs(name corev1.ResourceName) diagnosis.Claim {
	return diagnosis.That("status.hard", string(name), diagnosis.Is, view.QuantityText(v.Hard[name]))
}

// claims are what the quota allows, and what its status has as used; where that does not say,
// what was counted is nobody's claim.
func (v *Quota) claims(name corev1.ResourceName) []diagnosis.Claim {
	if v.Counted {
		return []diagnosis.Claim{diagnosis.That("spec.hard", string(name), diagnosis.Is, view.QuantityText(v.Hard[name]))}
	}
	return []diagnosis.Claim{v.hardIs(name), diagnosis.That("status.used", string(name), diagnosis.Is, view.QuantityText(v.used[name]))}
}

// heldClaims are what a pod has of it, where it is a request.
func heldClaims(name corev1.ResourceName, has resource.Quantity) []diagnosis.Claim {
	requested, ok := strings.CutPrefix(string(name), "requests.")
	if !ok {
		return nil
	}
	return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, requested, diagnosis.Is, view.QuantityText(has))}
}
