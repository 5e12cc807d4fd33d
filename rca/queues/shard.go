package queues

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ShardLabel parts a cluster among several schedulers of KAI: each looks at the nodes, queues and groups of
// pods that have one value of it, the first at those that have none (docs/operator/scheduling-shards.md; a
// cluster may name the label otherwise).
const ShardLabel = "kai.scheduler/node-pool"

// shardOf is the one whose scheduler looks at the pod; empty: the first.
func shardOf(c *Case) string {
	if o := c.Group(); o != nil {
		return o.GetLabels()[ShardLabel]
	}
	return c.Pod.Labels[ShardLabel]
}

// outOfShard is that the scheduler of the pod's shard does not see a queue that is there, and with it none
// of those below; nil where it does, or where who runs by it shows that.
func outOfShard(c *Case, queue *unstructured.Unstructured, child, lowest string) *Broken {
	shard, of := shardOf(c), queue.GetLabels()[ShardLabel]
	if shard == of || c.runsFrom(lowest) {
		return nil
	}
	name := queue.GetName()
	says := "KAI's Queue " + name + " is not of " + shardText(shard) + ", whose scheduler has the pod and does not see it"
	if child != "" {
		says = "KAI's Queue " + child + " names parent " + name + ", which is not of " + shardText(shard) + ": the scheduler of that shard, which has the pod, drops a queue whose parent it does not see"
	}
	return &Broken{Resource: "queues.scheduling.run.ai", Name: name, Shard: &Shard{Of: shard, Queue: of, Child: child},
		Finding: *view.Found(diagnosis.Likely, says,
			diagnosis.Fact(refOf("Queue", queue), labelText(of), shardClaim(of)),
			diagnosis.Fact(c.podRef(), labelText(c.Pod.Labels[ShardLabel]), c.Cluster.OfPod(c.Pod, shardClaim(c.Pod.Labels[ShardLabel]))...))}
}

// Shard is whose scheduler does not see a queue, which shard that is of, and which queue below it has the pod; empty for the
// first shard, and where it is the queue itself.
type Shard struct{ Of, Queue, Child string }

func shardText(shard string) string {
	if shard == "" {
		return "the first shard (no label " + ShardLabel + ")"
	}
	return fmt.Sprintf("shard %s (label %s)", shard, ShardLabel)
}

func labelText(value string) string {
	if value == "" {
		return "no label " + ShardLabel
	}
	return "label " + ShardLabel + "=" + value
}

func shardClaim(value string) diagnosis.Claim {
	if value == "" {
		return diagnosis.That(diagnosis.Labels, ShardLabel, diagnosis.Absent, "")
	}
	return diagnosis.That(diagnosis.Labels, ShardLabel, diagnosis.Is, value)
}
