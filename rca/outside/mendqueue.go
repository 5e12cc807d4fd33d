package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// MendQueue is for the queue that is missing or closed.
func MendQueue(c *edit.Workload) []edit.Change {
	q := c.Queue.Broken()
	if q == nil {
		return nil
	}
	ch := edit.Change{Kind: diagnosis.Manual, Cause: diagnosis.QueueMisconfigured, Manual: true, Risk: diagnosis.LowRisk}
	if by := c.Queue.SchedulerName(); q.Certainty != diagnosis.Proven && c.Elsewhere(c.Pod) != "" {
		ch.Untestable = by + " decides by its own rules, which are not run here"
	}
	list := "kubectl get " + q.Resource
	if q.Namespace != "" {
		list = "kubectl -n " + q.Namespace + " get " + q.Resource
	}
	labelled := fmt.Sprintf("kubectl -n %s get pod %s", c.Pod.Namespace, c.Pod.Name)
	if c.Unborn {
		labelled = fmt.Sprintf("kubectl -n %s get %s", c.Pod.Namespace, c.WorkloadName())
	}
	switch {
	case q.Unnamed:
		return []edit.Change{nameQueue(c, q)}
	case q.Shard != nil:
		ch.Title, ch.Until, ch.Commands = intoShard(c, q)
	case q.Meant != "":
		ch.Title, ch.Until = fmt.Sprintf("name queue %s by label %s in %s: %s, by which it is named now, its scheduler does not read", q.Meant, q.Label, c.WorkloadName(), q.By), "its pods carry label "+q.Label
		ch.Commands = []string{list, c.EditByHand(fmt.Sprintf("metadata.labels of its pods: %s: %s", q.Label, q.Meant))}
		if c.Incident.Workload.Kind == "Pod" {
			ch.Commands[1] = fmt.Sprintf("kubectl -n %s label pod %s %s=%s  # its PodGroup follows; made again with that label, it does for certain", c.Pod.Namespace, c.Pod.Name, q.Label, q.Meant)
		}
	case q.Over != nil:
		drawLess(q, &ch)
	case q.Missing:
		ch.Title, ch.Until = "make queue "+q.Name+", or name one that exists", "queue "+q.Name+" exists"
		ch.Commands = []string{list, labelled + " -o jsonpath='{.metadata.labels}'", fmt.Sprintf("kubectl -n %s edit %s  # the label or annotation that names its queue", c.Pod.Namespace, c.WorkloadName())}
	case q.Kind != "":
		setUp(c, q, &ch)
	default:
		ch.Title, ch.Until = "set queue "+q.Name+" up or open it again", "queue "+q.Name+" admits workloads"
		ch.Commands = []string{"kubectl describe " + q.Ref(), "kubectl edit " + q.Ref()}
	}
	return []edit.Change{ch}
}

// drawLess has a queue hold no more than what is above it has.
func drawLess(q *queues.Broken, ch *edit.Change) {
	o := q.Over
	ch.Title = fmt.Sprintf("let Queue %s hold no more than the %s %s that %s have", q.Name, o.Has.String(), o.Resource, o.Of)
	if strings.HasPrefix(o.Of, "Queue ") {
		ch.Title = strings.TrimSuffix(ch.Title, "have") + "may hold"
	}
	ch.Commands = []string{"kubectl get queues.scheduling.volcano.sh -o yaml  # spec.parent and spec.capability of each",
		fmt.Sprintf(`kubectl patch queues.scheduling.volcano.sh %s --type merge -p '{"spec":{"capability":{"%s":"%s"}}}'`, q.Name, o.Resource, o.Has.String()),
		"kubectl get pods -A -o wide | grep -i volcano-scheduler  # its log then says no more that the queues' hierarchical structure is wrong"}
	if o.Short != "" {
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl describe node %s  # it offers less %s than it has: the queue was right until then", o.Short, o.Resource))
	}
}

// QueueCommands show the queues of the scheduler that decides.
func QueueCommands(c *edit.Workload) []string {
	switch by := c.Queue.SchedulerName(); {
	case by == "kai-scheduler" || by == "runai-scheduler":
		return []string{"kubectl get queues.scheduling.run.ai -o yaml  # spec.resources.gpu: quota and limit; status: allocated", fmt.Sprintf("kubectl -n %s get podgroups.scheduling.run.ai -o yaml", c.Pod.Namespace)}
	case by == "volcano":
		return []string{"kubectl get queues.scheduling.volcano.sh -o yaml  # spec.capability, deserved; status.allocated", "kubectl get podgroups.scheduling.volcano.sh -A  # Inqueue counts as used"}
	case strings.Contains(by, "koord"):
		return []string{"kubectl get elasticquotas.scheduling.sigs.k8s.io -A -o yaml  # spec.min and max; annotation quota.scheduling.koordinator.sh/runtime is what it may have now: one that stays below min wants koord-scheduler started again, or a newer one"}
	case strings.Contains(by, "yunikorn"):
		return []string{"kubectl get configmap -A --field-selector metadata.name=yunikorn-configs -o yaml  # queues and their resources.max"}
	}
	return []string{fmt.Sprintf("kubectl -n %s get resourcequotas", c.Pod.Namespace)}
}
