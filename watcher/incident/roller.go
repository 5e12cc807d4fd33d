package incident

import (
	corev1 "k8s.io/api/core/v1"
)

// Roller is the Deployment or DaemonSet that replaces a pod by one of its new template, whatever owns that; false for none.
func Roller(p *corev1.Pod, lookup Lookup) (Ref, bool) {
	for _, of := range Owners(p, lookup)[1:] {
		if of.Kind == "Deployment" || of.Kind == "DaemonSet" {
			return of, true
		}
	}
	return Ref{}, false
}
