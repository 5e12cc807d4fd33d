package parts

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Trouble is what keeps a pod from being Ready, in its own words; false where nothing does.
func (k *Kit) Trouble(p *corev1.Pod) (says string, evidence diagnosis.Evidence, is bool) {
	if p.Status.Phase == corev1.PodSucceeded {
		return "", diagnosis.Evidence{}, false
	}
	l := k.Look(p)
	if l.State == "" {
		return "", diagnosis.Evidence{}, false
	}
	says = l.Words
	if l.Where != "" {
		says = "container " + l.Where + " " + l.Words
	}
	return says, diagnosis.Fact(view.PodRef(p), says, l.Claims...), true
}
