package outside

import (
	"fmt"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// intoShard is for the queue of KAI that the scheduler of the pod's shard does not see. One that others hang
// below is not moved: theirs is another shard, and they would lose it.
func intoShard(c *edit.Workload, q *queues.Broken) (title, until string, commands []string) {
	of, child := q.Shard.Of, q.Shard.Child
	look := "kubectl get queues.scheduling.run.ai -L " + queues.ShardLabel + " -o wide"
	labels, where, name := fmt.Sprintf("labels: {%s: %s}", queues.ShardLabel, of), fmt.Sprintf("with label %s=%s", queues.ShardLabel, of), of+"-parent"
	if of == "" {
		labels, where, name = "labels: {}", "without label "+queues.ShardLabel, "parent-of-"+child
	}
	if child == "" && of == "" { // who names no shard is of the first, and was meant for that of the queue that it names
		own := fmt.Sprintf("%s=%s", queues.ShardLabel, q.Shard.Queue)
		set := c.EditByHand("metadata.labels of its pods: " + queues.ShardLabel + ": " + q.Shard.Queue)
		if c.Incident.Workload.Kind == "Pod" {
			set = fmt.Sprintf("kubectl -n %s label pod %s %s  # its PodGroup follows; made again with that label, it does for certain", c.Pod.Namespace, c.Pod.Name, own)
		}
		return fmt.Sprintf("have %s be of the shard of queue %s, by label %s; or name a queue %s", c.WorkloadName(), q.Name, own, where), "its queue is of its shard", []string{look, "kubectl get nodes -l " + own + "  # the machines of that shard", set}
	}
	if child == "" {
		set := fmt.Sprintf("kubectl label queues.scheduling.run.ai %s %s=%s --overwrite  # if it is for that shard alone: the others then do not see it; each queue above it needs the same", q.Name, queues.ShardLabel, of)
		return "name a queue " + where + ", or make " + q.Name + " one", "its queue is of its shard", []string{look, set}
	}
	const any = "{quota: -1, limit: -1, overQuotaWeight: 1}"
	return fmt.Sprintf("give Queue %s a parent %s: make one, and name it in place of %s", child, where, q.Name), "Queue " + child + " has a parent of its shard", []string{look,
		edit.Feed("kubectl apply", fmt.Sprintf("{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: %s, %s}, spec: {resources: {cpu: %s, gpu: %s, memory: %s}}}", name, labels, any, any, any)) + "  # -1: without a limit",
		fmt.Sprintf(`kubectl patch queues.scheduling.run.ai %s --type merge -p '{"spec":{"parentQueue":%q}}'  # %s itself stays as it is, for queues of other shards may be below it`, child, name, q.Name)}
}
