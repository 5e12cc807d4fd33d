package outside

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// queue is for what Kueue holds and has made no Workload for: it does not run, or does not look after
// that kind, or after pods that are made this way.
func queue(c *edit.Workload) edit.Change {
	return queueChange(diagnosis.Manual, diagnosis.NoRisk, "Kueue has made a Workload for it", "see why Kueue has made no Workload for "+c.WorkloadName(),
		"kubectl get deployments -A | grep -i kueue  # does its controller run",
		"kubectl -n kueue-system get configmap kueue-manager-config -o yaml  # integrations.frameworks: is the kind of the workload there",
		fmt.Sprintf("kubectl -n kueue-system logs deploy/kueue-controller-manager --since=1h | grep %s  # a controller that fails says it here; some versions make none for the pods that a rollout adds", c.Incident.Workload.Name),
		fmt.Sprintf("kubectl -n %s get workloads.kueue.x-k8s.io", c.Pod.Namespace))
}

// passOver is for who stands behind a Workload that gets no quota: a queue that takes what fits, or
// that one set aside for now.
func passOver(h *queues.Head) edit.Change {
	w := h.Workload
	return queueChange(diagnosis.Manual, diagnosis.MediumRisk, "its ClusterQueue looks at it", fmt.Sprintf("let ClusterQueue %s take what fits behind %s (queueingStrategy BestEffortFIFO), or set that one aside", h.Queue.GetName(), h.Ref()),
		fmt.Sprintf(`kubectl patch clusterqueues.kueue.x-k8s.io %s --type merge -p '{"spec":{"queueingStrategy":"BestEffortFIFO"}}'  # of all who queue there; a large one may then be passed over for long`, h.Queue.GetName()),
		fmt.Sprintf(`kubectl -n %s patch workloads.kueue.x-k8s.io %s --type merge -p '{"spec":{"active":false}}'  # or this; active: true queues it again`, w.GetNamespace(), w.GetName()))
}
