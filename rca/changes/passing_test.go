package changes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// What a node offers while its layout is about to change is no way out; what it offers behind a
// layout that MIG manager is done with is.
func TestWhatANodeOffersForAMinute(t *testing.T) {
	written := func(key string, ago time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: "m", Time: &metav1.Time{Time: rcatest.Noon.Add(-ago)}, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)}
	}
	for name, tc := range map[string]struct {
		cause       diagnosis.CauseID
		asked, said time.Duration // ago
		want        bool
	}{
		"its layout was lost":                      {diagnosis.MIGLayoutDrift, 2 * time.Hour, time.Hour, false},
		"a newer layout is asked for":              {diagnosis.MIGLayoutDrift, time.Hour, 2 * time.Hour, true},
		"a newer one, where the pod lacks nothing": {diagnosis.MIGFull, time.Hour, 2 * time.Hour, false},
		"MIG manager has failed":                   {diagnosis.MIGConfigFailed, 2 * time.Hour, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Config: "mine", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				n.Labels[view.LabelMIGState] = "success"
				n.ManagedFields = []metav1.ManagedFieldsEntry{written(view.LabelMIGConfig, tc.asked), written(view.LabelMIGState, tc.said)}
			})
			if got := passing(w.bench(t, "Deployment").Node("n"), []diagnosis.CauseID{tc.cause}, view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
