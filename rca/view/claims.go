package view

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
)

// OfPod are claims about a pod; none of one that does not exist, or not yet.
func (w *Cluster) OfPod(p *corev1.Pod, claims ...diagnosis.Claim) []diagnosis.Claim {
	if w.State.Pod(p.Namespace, p.Name) == nil {
		return nil
	}
	for i := range claims {
		claims[i].Ref = PodRef(p)
	}
	return claims
}

// GatedBy claims scheduling gates of a pod.
func GatedBy(gates ...string) []diagnosis.Claim {
	out := make([]diagnosis.Claim, len(gates))
	for i, gate := range gates {
		out[i] = diagnosis.That("spec.schedulingGates", "name="+gate, diagnosis.Exists, "")
	}
	return out
}

// ConditionIs claims a condition's status.
func ConditionIs(kind, status string) diagnosis.Claim {
	return diagnosis.That("status.conditions[type="+kind+"].status", "", diagnosis.Is, status)
}

// SaysOf claims a condition's own words, where it has any.
func SaysOf(k scaling.Condition) []diagnosis.Claim {
	if k.Message == "" {
		return nil
	}
	return []diagnosis.Claim{diagnosis.Says(k.Message)}
}

// LimitsOf claims a pool's limits, and what is used of them.
func LimitsOf(p *scaling.Pool) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, name := range SortedNames(p.Limits) {
		limit := p.Limits[name]
		out = append(out, diagnosis.That("spec.limits", string(name), diagnosis.Is, limit.String()))
		if used, known := p.Used[name]; known {
			out = append(out, diagnosis.That("status.resources", string(name), diagnosis.Is, used.String()))
		}
	}
	return out
}
