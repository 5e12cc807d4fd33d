package shelf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

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
