package whatif

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A share of a GPU that KAI is asked for is on a node with one; whoever asks another scheduler, or for a whole one too, is
// judged by what it requests.
func TestASharedGPUIsOnANodeThatHasOne(t *testing.T) {
	gpu := node("gpu", 8000, 0)
	gpu.Status.Allocatable[wholeGPU] = resource.MustParse("1")
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("cpu", 8000, 0), gpu}})
	for name, tc := range map[string]struct {
		key, by string
		whole   bool
		want    []string
	}{
		"a part":                   {"gpu-fraction", "kai-scheduler", false, []string{"gpu"}},
		"memory of Run:ai":         {"gpu-memory", "runai-scheduler", false, []string{"gpu"}},
		"another reads it not":     {"gpu-memory", "volcano", false, []string{"cpu", "gpu"}},
		"nothing of it":            {"other", "kai-scheduler", false, []string{"cpu", "gpu"}},
		"a whole one is a request": {"gpu-memory", "kai-scheduler", true, []string{"gpu"}},
	} {
		p := pod("p", 100, 0)
		p.Annotations, p.Spec.SchedulerName = map[string]string{tc.key: "0.5"}, tc.by
		if tc.whole {
			p.Spec.Containers[0].Resources.Limits[wholeGPU] = resource.MustParse("1")
		}
		v := explain(t, s, p)
		if got := v.Feasible(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v", name, got)
		}
		if fits, err := s.Fits(t.Context(), p); err != nil || !slices.Equal(fits, tc.want) {
			t.Errorf("%s: fits %v, %v", name, fits, err)
		}
		for _, n := range v.Nodes {
			if n.Node == "cpu" && len(tc.want) == 1 && (len(n.Blockers) != 1 || n.Blockers[0].Reason != "Insufficient nvidia.com/gpu") {
				t.Errorf("%s: %v", name, n.Blockers)
			}
		}
	}
}
