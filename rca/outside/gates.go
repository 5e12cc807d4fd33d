package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// OpenGates asks who closed the pod off; nobody else may open it.
func OpenGates(c *edit.Workload) []edit.Change {
	if u := queues.Unplaced(c.Queue); u != nil {
		return []edit.Change{bePlaced(c, u)}
	}
	gates := strings.Join(c.Gates(), ", ")
	return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "the gates " + gates + " are removed", Title: "ask who owns the gates " + gates + " to remove them",
		Commands: []string{"kubectl -n " + c.Pod.Namespace + " get pod " + c.Pod.Name + " -o jsonpath='{.spec.schedulingGates}'"}}}
}

// bePlaced is for a pod that Kueue has admitted and given no place: without its gate it would run where Kueue does not count it.
func bePlaced(c *edit.Workload, u *queues.Placing) edit.Change {
	ns, manager := queues.Manager(c.Cluster)
	look := []string{fmt.Sprintf("kubectl -n %s get workloads.kueue.x-k8s.io %s -o yaml  # status.admission.podSetAssignments: topologyAssignment is where its pods go", u.Workload.GetNamespace(), u.Workload.GetName()),
		fmt.Sprintf("kubectl -n %s logs deployment/%s --tail=-1 | grep %s", ns, manager, u.Workload.GetName())}
	ch := edit.LookAt(diagnosis.SchedulingGated, "see why Kueue gives "+c.Pod.Name+" no place: it owns the gate, which nobody else is to remove", "why Kueue places a pod nowhere its own log says", look...)
	if u.Short && u.Slice > 1 && u.Pods%u.Slice != 0 {
		ch.Title = fmt.Sprintf("make %s again with a number of pods that %d divides: Kueue places slices of %d, and no rest", c.WorkloadName(), u.Slice, u.Slice)
		ch.Untestable, ch.Commands = "what Kueue then places is not run here", append(ch.Commands, c.Replace(fmt.Sprintf("write a number of pods that %d divides: parallelism, and completions", u.Slice)))
		ch.Drained, ch.Risk, ch.Minutes = c.Cluster.Running(c.Incident.Workload), diagnosis.MediumRisk, 10
	}
	return ch
}
