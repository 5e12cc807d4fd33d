package outside

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/queues/full"
	"github.com/unpend/unpend/rca/view"
)

// mayPreempt is for the Workload that waits while its own ClusterQueue has given quota to one of lower priority, which Kueue takes
// from nobody: by the queue's policy it preempts none of its own, or none for a Workload that borrows (pkg/scheduler/flavorassigner,
// kueue issue 16049). nil where the policy lets it.
func mayPreempt(c *edit.Workload, w *unstructured.Unstructured) *edit.Change {
	q := c.Queue.ClusterQueue(w)
	if why, _ := queues.Why(w); q == nil || !strings.Contains(why, "insufficient unused quota") {
		return nil
	}
	h := lowerHolder(c, q, w)
	if h == nil {
		return nil
	}
	policy := func(path ...string) string {
		text, _, _ := unstructured.NestedString(q.Object, append([]string{"spec", "preemption"}, path...)...) //nolint:errcheck // what is no text is no policy
		if text == "" {
			return "Never"
		}
		return text
	}
	title, patch := "", ""
	switch {
	case policy("withinClusterQueue") == "Never":
		title, patch = "preempts nobody of its own queue (withinClusterQueue: Never)", `"withinClusterQueue":"LowerPriority"`
	case policy("borrowWithinCohort", "policy") == "Never" && borrows(c, q, w):
		title, patch = "preempts nobody for who asks more than its nominal quota (borrowWithinCohort: Never)", `"borrowWithinCohort":{"policy":"LowerPriority"}`
		if policy("reclaimWithinCohort") == "Never" {
			patch += `,"reclaimWithinCohort":"LowerPriority"` // Kueue takes the one with the other alone
		}
	default:
		return nil
	}
	ch := queueChange(diagnosis.Manual, diagnosis.MediumRisk, "Kueue admits it", fmt.Sprintf("let ClusterQueue %s preempt %s, of lower priority: now Kueue %s", q.GetName(), h.Ref(), title),
		fmt.Sprintf(`kubectl patch clusterqueues.kueue.x-k8s.io %s --type merge -p '{"spec":{"preemption":{%s}}}'  # for all that wait in it; with fair sharing, Kueue preempts by shares, too`, q.GetName(), patch),
		fmt.Sprintf("kubectl -n %s describe workloads.kueue.x-k8s.io %s", w.GetNamespace(), w.GetName()))
	ch.StopsUnknown = true
	return &ch
}

// lowerHolder is who has quota of the ClusterQueue and a lower priority; nil for nobody.
func lowerHolder(c *edit.Workload, q, w *unstructured.Unstructured) *queues.Holder {
	priority := func(w *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedFieldNoCopy(w.Object, "spec", "priority") //nolint:errcheck // none is 0
		return int64(view.AsInt(n))
	}
	for _, h := range c.Queue.Holders(q) {
		if h.Evicted == "" && h.Orphan == "" && priority(h.Workload) < priority(w) {
			return &h
		}
	}
	return nil
}

// borrows says whether a Workload of one kind of pods asks more of the pod's GPUs than any flavor of its ClusterQueue has of its own.
func borrows(c *edit.Workload, q, w *unstructured.Unstructured) bool {
	sets, _, err := unstructured.NestedSlice(w.Object, "spec", "podSets")
	if err != nil || len(sets) != 1 || len(c.Asks) == 0 {
		return false
	}
	set, _ := sets[0].(map[string]any) //nolint:errcheck // what is no set has no count
	name := c.Asks[0].Resource
	asks := view.PodRequests(c.Pod)[name].DeepCopy()
	asks.Mul(int64(view.AsInt(set["count"])))
	most, known := full.Nominal(q, name)
	return known && asks.Cmp(most) > 0
}
