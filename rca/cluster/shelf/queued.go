package shelf

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

const workload = "Workload.kueue.x-k8s.io"

// ofWorkloads are the parts of Kueue's Workloads: who trains the same model again and again asks for
// the same each time, and is given it from the same flavors.
var ofWorkloads = []*part{{path: []string{"spec", "podSets"}}, {path: []string{"status", "admission"}}}

// queued has a Workload hold once with others the parts that they have alike.
func (s *Shelf) queued(o *unstructured.Unstructured) error {
	if k := cluster.KindOf(o.GetAPIVersion(), o.GetKind()); k == nil || k.Name != workload {
		return nil
	}
	for _, p := range ofWorkloads {
		key := p.path[1]
		in, _ := o.Object[p.path[0]].(map[string]any)
		if in[key] == nil || !s.pays(p) {
			continue
		}
		text, err := json.Marshal(in[key])
		if err != nil {
			return err
		}
		if known, ok := s.find(p, text).(*unstructured.Unstructured); ok {
			in[key] = known.Object[key]
		} else {
			s.put(p, text, &unstructured.Unstructured{Object: map[string]any{key: in[key]}})
		}
	}
	return nil
}
