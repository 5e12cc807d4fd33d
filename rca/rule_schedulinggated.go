package rca

import (
	"strings"
)

// queueGate is Kueue's (kueue.x-k8s.io, pod integration).
const queueGate = "kueue.x-k8s.io/admission"

// schedulingGated: gates keep the pod out of the scheduler's queue. There is no
// event; the condition is written by the API server at creation.
var schedulingGated = PodRule{
	ID: SchedulingGated,
	Tell: func(c *Case) *finding {
		gates := c.gates()
		if len(gates) == 0 {
			return nil
		}
		return &finding{Proven, "held by scheduling gates: " + strings.Join(gates, ", "), []Evidence{{c.ref(), "spec.schedulingGates: " + strings.Join(gates, ", ")}}}
	},
}

// gates are the pod's scheduling gates without those of queues, which have a rule
// of their own.
func (c *Case) gates() []string {
	var out []string
	for _, g := range c.Pod.Spec.SchedulingGates {
		if g.Name != queueGate {
			out = append(out, g.Name)
		}
	}
	return out
}
