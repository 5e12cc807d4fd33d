package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// queue is for what Kueue holds and has made no Workload for: it does not run, or leaves out that
// namespace, that kind, or pods that are made this way.
func queue(c *edit.Workload) edit.Change {
	const until = "Kueue has made a Workload for it"
	u := c.Queue.WhyUnqueued()
	ns, manager := queues.Manager(c.Cluster)
	log := managersLog(c, "1h", c.Incident.Workload.Name) + "  # a controller that fails says it here; some versions make none for the pods that a rollout adds"
	list := fmt.Sprintf("kubectl -n %s get workloads.kueue.x-k8s.io", c.Pod.Namespace)
	if u.Down {
		return queueChange(diagnosis.Manual, diagnosis.NoRisk, until, fmt.Sprintf("bring back Kueue's controller (%s/%s)", ns, manager),
			fmt.Sprintf("kubectl -n %s describe deployment %s", ns, manager), fmt.Sprintf("kubectl -n %s get pods -o wide", ns), list)
	}
	if left := queues.LeftBehind(c.Queue); left != nil {
		ch := queueChange(diagnosis.Manual, diagnosis.LowRisk, until, fmt.Sprintf("delete Workload %s, which is of an earlier %s that is gone: Kueue makes one for this", left.GetName(), c.WorkloadName()),
			fmt.Sprintf("kubectl -n %s get workloads.kueue.x-k8s.io %s -o yaml  # metadata.ownerReferences: its uid is not that of", left.GetNamespace(), left.GetName()),
			fmt.Sprintf("kubectl -n %s get %s -o jsonpath='{.metadata.uid}'", left.GetNamespace(), c.WorkloadName()),
			fmt.Sprintf("kubectl -n %s delete workloads.kueue.x-k8s.io %s  # the quota that it may hold is given back; where it stays, a finalizer keeps it: kueue.x-k8s.io/resource-in-use", left.GetNamespace(), left.GetName()))
		ch.Minutes = 1
		return ch
	}
	var doubts []string
	if u.Namespace != "" {
		doubts = append(doubts, "namespace "+u.Namespace)
	}
	if u.Kind != "" {
		doubts = append(doubts, "kind "+u.Kind)
	}
	title, commands := "see why Kueue has made no Workload for "+c.WorkloadName(), []string{}
	if u.Controller == nil {
		commands = append(commands, "kubectl get deployments -A | grep -i kueue  # does its controller run")
	} else if len(doubts) > 0 {
		title = fmt.Sprintf("see whether Kueue is set up to leave out %s (it has made no Workload there), or let %s begin without it", strings.Join(doubts, " or "), c.WorkloadName())
	}
	named := c.Queue.Held != nil && c.Queue.Held.Named != nil
	if named && u.Kind != "" && u.Controller != nil {
		title = "have Kueue look after " + u.Kind + ": it has made no Workload of that kind, and none of what that makes"
	}
	commands = append(commands, fmt.Sprintf("kubectl -n %s get configmap kueue-manager-config -o yaml  # managedJobsNamespaceSelector: the labels of namespaces; integrations.frameworks: kinds", ns),
		"kubectl get namespace "+c.Pod.Namespace+" --show-labels", log, list)
	if named {
		commands = append(commands, fmt.Sprintf("kubectl -n %s rollout restart deployment %s  # once that kind is among integrations.frameworks: it reads them as it starts", ns, manager))
	}
	if c.Incident.Workload.Kind == "Job" && len(doubts) > 0 && u.Controller != nil {
		commands = append(commands, fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"suspend":false}}'  # where Kueue is not to look after it: it begins, and no queue counts it`, c.Pod.Namespace, c.WorkloadName()))
	}
	return queueChange(diagnosis.Manual, diagnosis.NoRisk, until, title, commands...)
}

// managersLog is what Kueue's controller says of an object.
func managersLog(c *edit.Workload, since, name string) string {
	ns, manager := queues.Manager(c.Cluster)
	return fmt.Sprintf("kubectl -n %s logs deploy/%s --since=%s | grep %s", ns, manager, since, name)
}

// passOver is for who stands behind a Workload that gets no quota: a queue that takes what fits, or
// that one set aside for now.
func passOver(h *queues.Head) edit.Change {
	w := h.Workload
	return queueChange(diagnosis.Manual, diagnosis.MediumRisk, "its ClusterQueue looks at it", fmt.Sprintf("let ClusterQueue %s take what fits behind %s (queueingStrategy BestEffortFIFO), or set that one aside", h.Queue.GetName(), h.Ref()),
		fmt.Sprintf(`kubectl patch clusterqueues.kueue.x-k8s.io %s --type merge -p '{"spec":{"queueingStrategy":"BestEffortFIFO"}}'  # of all who queue there; a large one may then be passed over for long`, h.Queue.GetName()),
		fmt.Sprintf(`kubectl -n %s patch workloads.kueue.x-k8s.io %s --type merge -p '{"spec":{"active":false}}'  # or this; active: true queues it again`, w.GetNamespace(), w.GetName()))
}
