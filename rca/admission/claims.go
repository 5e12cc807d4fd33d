package admission

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
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
	if !ok && name != corev1.ResourceCPU && name != corev1.ResourceMemory { // these two are requests by their bare names
		return nil
	}
	return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, requested, diagnosis.Is, view.QuantityText(has))}
}

// lacksClaims are how many pods an owner wants, where one field says so, and what it was
// told last.
func lacksClaims(r incident.Refusal) []diagnosis.Claim {
	var out []diagnosis.Claim
	switch r.Owner.Kind {
	case "ReplicaSet", "StatefulSet", "Deployment":
		out = append(out, diagnosis.That("spec.replicas", "", diagnosis.Is, strconv.Itoa(r.Wants)))
	case "DaemonSet":
		out = append(out, diagnosis.That("status.desiredNumberScheduled", "", diagnosis.Is, strconv.Itoa(r.Wants)))
	case incident.KindOf(incident.VolcanoJob):
		out = append(out, diagnosis.That("spec.tasks", "", diagnosis.Contains, strconv.Itoa(r.Wants)))
	}
	if r.Says != "" {
		out = append(out, diagnosis.Says(r.Says))
	}
	return out
}
