package causes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
		f := &finding{diagnosis.Proven, "held by scheduling gates: " + strings.Join(gates, ", "), []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "spec.schedulingGates: "+strings.Join(gates, ", "), c.ofPod(view.GatedBy(gates...)...)...)}}
		if u := queues.Unplaced(c.Queue); u != nil {
			says, facts := u.Says()
			f.Says, f.Evidence = f.Says+says, append(f.Evidence, facts...)
		}
		return f
	},
}

// Gates are the pod's scheduling gates without those of queues, which have a rule of their own.
func (c *Case) Gates() []string {
	var out []string
	queued := slices.ContainsFunc(c.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == queues.Gate })
	for _, g := range c.Pod.Spec.SchedulingGates {
		if g.Name != queues.Gate && (g.Name != queues.TopologyGate || !queued) {
			out = append(out, g.Name)
		}
	}
	return out
}
