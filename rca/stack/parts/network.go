package parts

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LoadsMOFED says whether the Network Operator loads its driver by a pod; by older ones a name alone tells.
func LoadsMOFED(p *corev1.Pod) bool {
	_, labelled := p.Labels["nvidia.com/ofed-driver"]
	return labelled || strings.HasPrefix(p.Name, "mofed-")
}
