package rca

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// queueNotAdmitted: Kueue holds the pod by its gate until its Workload has quota.
var queueNotAdmitted = PodRule{
	ID: QueueNotAdmitted,
	Tell: func(c *Case) *finding {
		if !slices.ContainsFunc(c.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == queueGate }) {
			return nil
		}
		evidence := []Evidence{{c.ref(), "gate " + queueGate}}
		if q := c.Pod.Labels["kueue.x-k8s.io/queue-name"]; q != "" {
			evidence = append(evidence, Evidence{c.ref(), "queue " + q})
		}
		return &finding{Proven, "its queue (Kueue) has not admitted it", evidence}
	},
	changes: func(c *Case) []change {
		return []change{{kind: Wait, manual: true, risk: "none", until: "Kueue admits it", title: "wait until its queue admits it",
			commands: []string{"kubectl -n " + c.Pod.Namespace + " get workloads.kueue.x-k8s.io"}}}
	},
}
