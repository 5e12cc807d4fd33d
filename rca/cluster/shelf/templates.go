package shelf

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

// alike are the parts that objects of the kinds of queues and operators have alike: who trains the same model again and
// again asks for the same each time, and is given it from the same flavors.
var alike = map[string][]*part{
	"Workload.kueue.x-k8s.io": {{path: []string{"spec", "podSets"}}, {path: []string{"status", "admission"}}},
	"Job.batch.volcano.sh":    {{path: []string{"spec", "tasks"}}},
	"RayCluster.ray.io":       {{path: []string{"spec", "headGroupSpec"}}, {path: []string{"spec", "workerGroupSpecs"}}},
	"JobSet":                  {{path: []string{"spec", "replicatedJobs"}}},
	"PyTorchJob":              {{path: []string{"spec", "pytorchReplicaSpecs"}}},
	"TFJob":                   {{path: []string{"spec", "tfReplicaSpecs"}}},
	"XGBoostJob":              {{path: []string{"spec", "xgbReplicaSpecs"}}},
	"PaddleJob":               {{path: []string{"spec", "paddleReplicaSpecs"}}},
	"JAXJob":                  {{path: []string{"spec", "jaxReplicaSpecs"}}},
}

// templates has an object of such a kind hold once with others the parts that they have alike.
func (s *Shelf) templates(o *unstructured.Unstructured) error {
	k := cluster.KindOf(o.GetAPIVersion(), o.GetKind())
	if k == nil {
		return nil
	}
	for _, p := range alike[k.Name] {
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
