package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/view"
)

// A share of a GPU that is asked of KAI counts as a whole one only where no node offers any: which GPUs have room for one
// KAI's own books tell.
func TestAShareOfKAIs(t *testing.T) {
	for name, tc := range map[string]struct {
		gpus        int
		annotation  string
		by          string
		asks        int64
		wants, kept int64
	}{
		"a fraction, and no GPU":   {0, "gpu-fraction", "kai-scheduler", 0, 1, 0},
		"memory, and no GPU":       {0, "gpu-memory", "runai-scheduler", 0, 1, 0},
		"a GPU is offered":         {1, "gpu-fraction", "kai-scheduler", 0, 0, 0},
		"another schedules it":     {0, "gpu-fraction", corev1.DefaultSchedulerName, 0, 0, 0},
		"it asks for no share":     {0, "other", "kai-scheduler", 0, 0, 0},
		"it asks for GPUs as well": {0, "gpu-fraction", "kai-scheduler", 2, 2, 2},
	} {
		w := newWorld()
		w.unreported(sim.Node{Name: "n1", Model: "L4", GPUs: tc.gpus})
		if tc.gpus == 0 {
			delete(w.Nodes[0].Status.Allocatable, "nvidia.com/gpu")
			delete(w.Nodes[0].Status.Capacity, "nvidia.com/gpu")
		}
		asks := "nvidia.com/gpu"
		if tc.asks == 0 {
			asks = ""
		}
		p := w.pod("w", "", asks, tc.asks, func(p *corev1.Pod) {
			p.Annotations, p.Spec.SchedulerName = map[string]string{tc.annotation: "0.5"}, tc.by
		})
		got := view.PodRequests(asWhole(view.New(w.State), p))["nvidia.com/gpu"]
		kept := view.PodRequests(p)["nvidia.com/gpu"]
		if got.Value() != tc.wants || kept.Value() != tc.kept {
			t.Errorf("%s: %d GPUs, and the pod itself %d; want %d, %d", name, got.Value(), kept.Value(), tc.wants, tc.kept)
		}
	}
}
