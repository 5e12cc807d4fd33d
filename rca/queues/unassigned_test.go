package queues

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
)

// Of a pod that Kueue has admitted and keeps by its gate for places it is told how many of its siblings have one.
func TestWhoIsGivenNoPlace(t *testing.T) {
	for name, k := range map[string]struct {
		gates    []string
		admitted string
		each     int64
		want     string
	}{
		"one of five has none":    {[]string{TopologyGate}, "True", 1, ": Kueue has given places to 4 of its 5 pods, for it places 2 at a time"},
		"how many is not told":    {[]string{TopologyGate}, "True", 2, ": Kueue is to take it away, and has admitted Workload/a/mine"},
		"it is not admitted":      {[]string{TopologyGate}, "False", 1, ""},
		"another's gate is there": {[]string{TopologyGate, "example.com/x"}, "True", 1, ""},
		"it has none":             {nil, "True", 1, ""},
	} {
		c := open(t, func(w *rcatest.World) {
			w.Wait.Spec.SchedulingGates = nil
			for _, g := range k.gates {
				w.Wait.Spec.SchedulingGates = append(w.Wait.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: g})
			}
			o := queued(w, map[string]any{}, map[string]any{"conditions": []any{condition("Admitted", k.admitted, "Admitted", "said")}})
			set := func(v any, path ...string) {
				if err := unstructured.SetNestedField(o.Object, v, path...); err != nil {
					t.Fatal(err)
				}
			}
			set([]any{map[string]any{"name": "main", "count": int64(5), "topologyRequest": map[string]any{"podSetSliceSize": int64(2)}}}, "spec", "podSets")
			set([]any{map[string]any{"name": "main", "topologyAssignment": map[string]any{"slices": []any{map[string]any{"domainCount": int64(4), "podCounts": map[string]any{"universal": k.each}}}}}}, "status", "admission", "podSetAssignments")
		})
		got := ""
		if u := Unplaced(c); u != nil {
			got, _ = u.Says()
		}
		if got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}
