package shelf

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

// Workloads whose pods are alike hold their specs once, and say the same as before.
func TestWorkloadsShareWhatTheirPodsHaveAlike(t *testing.T) {
	s := New()
	kept := func(apiVersion, name string, images ...string) []map[string]any {
		var sets []any
		for _, image := range images {
			sets = append(sets, map[string]any{"name": image, "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"job": name}},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}}})
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Workload", "metadata": map[string]any{"name": name}, "spec": map[string]any{"podSets": append(sets, "odd", map[string]any{})}}}
		cluster.Trim(o)
		want := o.DeepCopy()
		if err := s.Share(o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o); diff != "" {
			t.Error(diff)
		}
		var out []map[string]any
		for _, set := range sets {
			out = append(out, set.(map[string]any)["template"].(map[string]any)["spec"].(map[string]any))
		}
		return out
	}
	same := func(a, b map[string]any) bool {
		a["mark"] = "of both"
		defer delete(a, "mark")
		return maps.EqualFunc(a, b, func(x, y any) bool { return fmt.Sprint(x) == fmt.Sprint(y) })
	}
	const kueue = "kueue.x-k8s.io/v1beta1"
	a, b := kept(kueue, "a", "head", "worker"), kept(kueue, "b", "worker")
	if !same(a[1], b[0]) || same(a[0], b[0]) {
		t.Error("alike are two, or different ones are one")
	}
	if other := kept("example.org/v1", "c", "worker"); same(other[0], b[0]) {
		t.Error("another API's Workload holds what Kueue's does")
	}
}
