package shelf

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

// podSpecs are those of the pods that Kueue's Workloads have templates of: who trains the same model
// again and again asks for the same each time.
var podSpecs = &part{}

const workload = "Workload.kueue.x-k8s.io"

// queued has a Workload hold the specs of its pods once with others that have the same.
func (s *Shelf) queued(o *unstructured.Unstructured) error {
	if k := cluster.KindOf(o.GetAPIVersion(), o.GetKind()); k == nil || k.Name != workload || !s.pays(podSpecs) {
		return nil
	}
	spec, _ := o.Object["spec"].(map[string]any)
	sets, _ := spec["podSets"].([]any)
	for _, set := range sets {
		one, _ := set.(map[string]any)
		template, _ := one["template"].(map[string]any)
		of, is := template["spec"].(map[string]any)
		if !is {
			continue
		}
		text, err := json.Marshal(of)
		if err != nil {
			return err
		}
		if known, ok := s.find(podSpecs, text).(*unstructured.Unstructured); ok {
			template["spec"] = known.Object
		} else {
			s.put(podSpecs, text, &unstructured.Unstructured{Object: of})
		}
	}
	return nil
}
