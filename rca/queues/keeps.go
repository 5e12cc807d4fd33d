package queues

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
)

// outrun is what Kueue says of a Workload for which there was room before it looked at another of the cohort in the same
// cycle (pkg/scheduler/scheduler.go).
const outrun = "no longer fits after processing another workload"

// Keeps is the Workload at the head of another queue of its cohort that passes over nobody, where Kueue had no room left for
// this one after others: what a StrictFIFO queue has unused it keeps for its head, and lends to nobody (kueue issue 4809). nil
// where it is not that.
func Keeps(c *Case, w *unstructured.Unstructured) *Head {
	why, _ := Why(w)
	queue := c.ClusterQueue(w)
	if queue == nil || cohortOf(queue) == "" || !strings.Contains(why, outrun) {
		return nil
	}
	lends := func(of *unstructured.Unstructured) bool {
		return of.GetName() != queue.GetName() && cohortOf(of) == cohortOf(queue) && nestedText(of, "spec", "queueingStrategy") == "StrictFIFO" && hasUnused(c, of)
	}
	var heads []*unstructured.Unstructured
	for _, other := range c.Cluster.State.QueuedWorkloads {
		if own := c.ClusterQueue(other); own != nil && pending(other) && lends(own) {
			heads = append(heads, other)
		}
	}
	if len(heads) == 0 {
		return nil
	}
	first := slices.MinFunc(heads, inTurn)
	return &Head{Workload: first, Queue: c.ClusterQueue(first)}
}

// hasUnused says whether a ClusterQueue has something unused, by its own figures, of what the pod asks.
func hasUnused(c *Case, queue *unstructured.Unstructured) bool {
	return slices.ContainsFunc(nested(queue, "spec", "resourceGroups"), func(group map[string]any) bool {
		return slices.ContainsFunc(list(group, "flavors"), func(flavor map[string]any) bool {
			for name := range c.Incident.Requests {
				if left, known := unused(queue, wordOf(flavor, "name"), name); known && left.Sign() > 0 {
					return true
				}
			}
			return false
		})
	})
}

// keepsSays tells of the head for which another queue of the cohort keeps what it has unused.
func (h *Head) keepsSays() (string, []diagnosis.Evidence) {
	_, facts := h.says()
	return fmt.Sprintf("what was free of its cohort is not lent to it: ClusterQueue %s is StrictFIFO, and %s waits at its head", h.Queue.GetName(), h.Ref()), facts
}

// cohortOf is the cohort of a ClusterQueue; empty where it has none.
func cohortOf(queue *unstructured.Unstructured) string {
	return nestedText(queue, "spec", "cohort") + nestedText(queue, "spec", "cohortName") // v1beta1, v1beta2
}
