package retry

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/view"
)

// scaled are the workloads that kubectl scale gives another number of pods.
var scaled = map[string]bool{"Deployment": true, "StatefulSet": true, "ReplicaSet": true}

// makeRoom is for pods that a scheduler sends one after the other to a node on which all is held: what the node offers
// is to be more, or the workload, which has some of it, is to have fewer pods.
func makeRoom(c *edit.Workload, t *kubelet.Turned) []edit.Change {
	const decides = "its scheduler decides by a count of its own, which is not run here"
	var out []edit.Change
	if t.OfHAMi() {
		ch := c.MorePlaces(diagnosis.KubeletAdmissionRefused, c.Queue.SchedulerName())
		ch.Risk, ch.Minutes = diagnosis.LowRisk, 5
		out = append(out, ch)
	}
	of := c.Incident.Workload
	if running := c.Cluster.Running(of); len(running) > 0 && scaled[of.Kind] {
		ch := edit.LookAt(diagnosis.KubeletAdmissionRefused, fmt.Sprintf("let %s have %s, as many as run: %s gives no more", c.WorkloadName(), view.CountOf(len(running), "pod"), t.On), decides,
			fmt.Sprintf("kubectl -n %s scale %s --replicas=%d  # and its autoscaler no more, where it has one", of.Namespace, c.WorkloadName(), len(running)))
		ch.Risk, ch.Minutes = diagnosis.LowRisk, 1
		out = append(out, ch)
	}
	return out
}
