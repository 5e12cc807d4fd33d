package queues

import (
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
