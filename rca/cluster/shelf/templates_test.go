package shelf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

// Each kind of operators that make pods of several templates has its parts by the name that its API gives them (the CRDs
// of Kueue, Volcano, KubeRay, JobSet and Kubeflow's training operator).
func TestWhatEachKindHasAlike(t *testing.T) {
	for _, tc := range []struct{ apiVersion, kind, field string }{
		{"kueue.x-k8s.io/v1beta1", "Workload", "podSets"}, {"batch.volcano.sh/v1alpha1", "Job", "tasks"}, {"ray.io/v1", "RayCluster", "workerGroupSpecs"}, {"ray.io/v1", "RayCluster", "headGroupSpec"},
		{"jobset.x-k8s.io/v1alpha2", "JobSet", "replicatedJobs"}, {"kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs"}, {"kubeflow.org/v1", "TFJob", "tfReplicaSpecs"},
		{"kubeflow.org/v1", "XGBoostJob", "xgbReplicaSpecs"}, {"kubeflow.org/v1", "PaddleJob", "paddleReplicaSpecs"}, {"kubeflow.org/v1", "JAXJob", "jaxReplicaSpecs"},
	} {
		s := New()
		var held [2]map[string]any
		for i := range held {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind, "spec": map[string]any{tc.field: map[string]any{"a": "b"}}}}
			if err := s.Share(o); err != nil {
				t.Fatal(err)
			}
			held[i] = o.Object["spec"].(map[string]any)[tc.field].(map[string]any)
		}
		if held[0]["mark"] = "of both"; held[1]["mark"] == nil {
			t.Errorf("%s %s holds %s twice", tc.apiVersion, tc.kind, tc.field)
		}
	}
}

// Workloads whose pods are alike hold once what they have alike, and say the same as before.
func TestWorkloadsShareWhatTheirPodsHaveAlike(t *testing.T) {
	s := New()
	kept := func(apiVersion, image string) map[string]any {
		set := map[string]any{"name": "main", "count": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}}}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Workload", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"podSets": []any{set}}}}
		cluster.Trim(o)
		want := o.DeepCopy()
		if err := s.Share(o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o); diff != "" {
			t.Error(diff)
		}
		return o.Object["spec"].(map[string]any)["podSets"].([]any)[0].(map[string]any)
	}
	same := func(a, b map[string]any) bool {
		a["mark"] = "of both"
		defer delete(a, "mark")
		return b["mark"] != nil
	}
	const kueue = "kueue.x-k8s.io/v1beta1"
	a, b, other := kept(kueue, "x"), kept(kueue, "x"), kept(kueue, "y")
	if !same(a, b) || same(a, other) {
		t.Error("alike are two, or different ones are one")
	}
	if same(kept("example.org/v1", "x"), b) {
		t.Error("another API's Workload holds what Kueue's does")
	}
	for _, spec := range []any{nil, "odd", map[string]any{"podSets": "odd"}} {
		if err := s.Share(&unstructured.Unstructured{Object: map[string]any{"apiVersion": kueue, "kind": "Workload", "spec": spec}}); err != nil {
			t.Error(err)
		}
	}
}
