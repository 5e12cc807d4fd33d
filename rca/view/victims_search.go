package view

import (
	corev1 "k8s.io/api/core/v1"
)

func (d Deficits) Names() []corev1.ResourceName {
	out := make([]corev1.ResourceName, 0, len(d))
	for name := range d {
		out = append(out, name)
	}
	return out
}
