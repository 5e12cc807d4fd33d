package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// queueGate is Kueue's (kueue.x-k8s.io, pod integration).
const queueGate = "kueue.x-k8s.io/admission"

// schedulingGated: gates keep the pod out of the scheduler's queue. There is no
// event; the condition is written by the API server at creation.
var schedulingGated = PodRule{
	ID: diagnosis.SchedulingGated,
	Tell: func(c *Case) *finding {
		gates := c.Gates()
		if len(gates) == 0 {
			return nil
		}
		return &finding{diagnosis.Proven, "held by scheduling gates: " + strings.Join(gates, ", "), []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "spec.schedulingGates: "+strings.Join(gates, ", "), c.gated(gates...)...)}}
	},
}

// Gates are the pod's scheduling gates without those of queues, which have a rule
// of their own.
func (c *Case) Gates() []string {
	var out []string
	for _, g := range c.Pod.Spec.SchedulingGates {
		if g.Name != queueGate {
			out = append(out, g.Name)
		}
	}
	return out
}
