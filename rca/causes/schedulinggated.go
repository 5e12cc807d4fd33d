package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
)

// schedulingGated: gates keep the pod out of the scheduler's queue. There is no
// event; the condition is written by the API server at creation.
var schedulingGated = PodRule{
	ID: diagnosis.SchedulingGated,
	Tell: func(c *Case) *finding {
		gates := c.Gates()
		if len(gates) == 0 {
			return nil
		}
		return &finding{diagnosis.Proven, "held by scheduling gates: " + strings.Join(gates, ", "), []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "spec.schedulingGates: "+strings.Join(gates, ", "), c.ofPod(view.GatedBy(gates...)...)...)}}
	},
}

// Gates are the pod's scheduling gates without those of queues, which have a rule
// of their own.
func (c *Case) Gates() []string {
	var out []string
	for _, g := range c.Pod.Spec.SchedulingGates {
		if g.Name != queues.Gate {
			out = append(out, g.Name)
		}
	}
	return out
}
