package shelf

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

// podSets are those of Kueue's Workloads: who trains the same model again and again asks for the same
// each time.
var podSets = &part{}

const workload = "Workload.kueue.x-k8s.io"

// queued has a Workload hold its pod sets once with others that have the same.
func (s *Shelf) queued(o *unstructured.Unstructured) error {
	if k := cluster.KindOf(o.GetAPIVersion(), o.GetKind()); k == nil || k.Name != workload || !s.pays(podSets) {
		return nil
	}
	const key = "podSets"
	spec, _ := o.Object["spec"].(map[string]any)
	sets, is := spec[key].([]any)
	if !is {
		return nil
	}
	text, err := json.Marshal(sets)
	if err != nil {
		return err
	}
	if known, ok := s.find(podSets, text).(*unstructured.Unstructured); ok {
		spec[key] = known.Object[key]
	} else {
		s.put(podSets, text, &unstructured.Unstructured{Object: map[string]any{key: sets}})
	}
	return nil
}
