package outside_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
)

// What Kueue says of a Workload tells whether waiting helps, more quota, or neither.
func TestWhatAQueueSays(t *testing.T) {
	const wait, raise = "by hand, none risk: wait until its queue admits it", "by hand, medium risk: raise the quota of its ClusterQueue"
	for name, tc := range map[string]struct {
		active  any
		message string
		want    string
	}{
		"nothing is known":        {nil, "none", wait},
		"others hold it":          {nil, "insufficient unused quota for nvidia.com/gpu", wait + "; " + raise},
		"it can never have it":    {nil, "insufficient quota, request > maximum capacity (8 > 4)", raise},
		"something else":          {true, "waiting for its checks", wait},
		"somebody has stopped it": {false, "insufficient unused quota", "by hand, none risk: see who made its Workload inactive"},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			if tc.message != "none" {
				spec := map[string]any{}
				if tc.active != nil {
					spec["active"] = tc.active
				}
				w.QueuedWorkloads = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "wl"}, "spec": spec,
					"status": map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": tc.message}}}}}}
				w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
			}
			if got := edittest.ToldAll(outside.LetInByQueue(edit.New(w.Case(t, "Deployment")))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
