package full

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// A group of which no pod is left, and that nothing owns, is left behind once it is not new; Volcano counts it as long as it is Inqueue.
func TestGroupsThatAreLeftBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(w *rcatest.World, g *unstructured.Unstructured)
		left bool
	}{
		"no pod is left": {func(*rcatest.World, *unstructured.Unstructured) {}, true},
		"it is new": {func(_ *rcatest.World, g *unstructured.Unstructured) {
			g.SetCreationTimestamp(metav1.Time{Time: rcatest.Noon.Add(time.Second - forsaken)})
		}, false},
		"it is not let in": {func(_ *rcatest.World, g *unstructured.Unstructured) {
			g.Object["status"] = map[string]any{"phase": "Pending"}
		}, false},
		"something owns it": {func(_ *rcatest.World, g *unstructured.Unstructured) {
			yes := true
			g.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: &yes}})
		}, false},
		"it has a pod": {func(w *rcatest.World, _ *unstructured.Unstructured) {
			w.Wait.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"}
		}, false},
		"of another namespace": {func(w *rcatest.World, g *unstructured.Unstructured) {
			w.Wait.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"}
			g.SetNamespace("b")
		}, true},
		"pods are not read": {func(w *rcatest.World, _ *unstructured.Unstructured) { w.Unread["Pod"] = "x" }, false},
	} {
		w := rcatest.NewWorld()
		func() {
			g := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "g"}, "status": map[string]any{"phase": "Inqueue"}}}
			g.SetCreationTimestamp(metav1.Time{Time: rcatest.Noon.Add(-forsaken)})
			tc.edit(w, g)
			w.PodGroups.Volcano = []*unstructured.Unstructured{g}
		}()
		v, done, err := view.Open(t.Context(), w.State, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(done)
		if got := Podless(&queues.Case{Cluster: v, Pod: w.Wait}); (len(got) == 1) != tc.left {
			t.Errorf("%s: %v", name, got)
		}
	}
}
