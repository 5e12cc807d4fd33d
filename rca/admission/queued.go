package admission

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// heldOf is what the objects of queues tell of whom they have not let begin, and what those that
// make pods of several templates tell of themselves.
func heldOf(st *cluster.State) []*incident.Held {
	var out []*incident.Held
	for _, of := range []struct {
		kind schema.GroupKind
		all  []*unstructured.Unstructured
	}{{incident.KueueWorkload, st.QueuedWorkloads}, {incident.VolcanoGroup, st.PodGroups.Volcano}, {incident.VolcanoJob, st.VolcanoJobs}, {incident.RayCluster, st.RayClusters}} {
		for _, o := range of.all {
			if h, ok := incident.HeldOf(of.kind, o); ok {
				out = append(out, h)
			}
		}
	}
	return out
}
