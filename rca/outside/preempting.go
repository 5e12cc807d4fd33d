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
	"github.com/unpend/unpend/watcher/incident"
)

// mayPreempt is for the Workload that waits while its own ClusterQueue has given quota to one of lower priority, which Kueue takes
// from nobody: by the queue's policy it preempts none of its own, or none for a Workload that borrows (pkg/scheduler/flavorassigner,
// kueue issue 16049). Nil where the policy lets it.
func mayPreempt(c *edit.Workload, w *unstructured.Unstructured) *edit.Change {
	q := c.Queue.ClusterQueue(w)
	if why, _ := queues.Why(w); q == nil || !strings.Contains(why, "insufficient unused quota") {
		return nil
	}
	h := full.LowerHolder(c.Queue, q, w)
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
	case policy("borrowWithinCohort", "policy") == "Never" && len(c.Asks) > 0 && full.Borrows(q, w, c.Asks[0].Resource, view.PodRequests(c.Pod)):
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
	ch.StopsUnknown = true // others that wait in it may preempt, too
	for _, o := range h.Workload.GetOwnerReferences() {
		ch.Drained = append(ch.Drained, c.Cluster.Running(incident.Ref{Kind: incident.OwnerKind(&o), Namespace: h.Workload.GetNamespace(), Name: o.Name})...)
	}
	return &ch
}
