package queues

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podName is namespace/name as schedulers write it.
var podName = regexp.MustCompile(`([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9](?:[-.a-z0-9]*[a-z0-9])?)`)

// Named are the other pods that a scheduler's words name, as far as they exist: it may wait for
// one of its own (KAI's GPU reservation: "failed waiting for GPU reservation pod to allocate:
// NAMESPACE/NAME").
func (c *Case) Named(w Word) []*corev1.Pod {
	var out []*corev1.Pod
	for _, m := range podName.FindAllStringSubmatch(w.message, -1) {
		p := c.Cluster.State.Pod(m[1], m[2])
		if p != nil && (p.Namespace != c.Pod.Namespace || p.Name != c.Pod.Name) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
