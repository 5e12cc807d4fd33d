package queues

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// Priority is that by which Kueue orders a team's Workload, which pods need not have; false for a team that is none of Kueue's,
// and for a Workload that it has not admitted.
func (c *Case) Priority(t view.Team) (int64, bool) {
	if t.Kind != "Workload" {
		return 0, false
	}
	w := objectOf(c.Cluster.State.QueuedWorkloads, t.Namespace, t.Name)
	if w == nil {
		return 0, false
	}
	if _, admitted, err := unstructured.NestedMap(w.Object, "status", "admission"); err != nil || !admitted {
		return 0, false
	}
	priority, _, err := unstructured.NestedInt64(w.Object, "spec", "priority")
	return priority, err == nil
}

// RunningOf are the pods of a team that have a node and have not ended.
func (c *Case) RunningOf(t view.Team) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace == t.Namespace && p.Spec.NodeName != "" && !view.Ended(p) && p.DeletionTimestamp == nil && c.Cluster.TeamOf(p) == t {
			out = append(out, p)
		}
	}
	return out
}
