package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A taint that Karpenter puts on a node until it can be used is not tolerated, be it of the
// node's own claim or of its pool.
func TestStartupTaintsAreNotTolerated(t *testing.T) {
	taints := func(key, effect string) []any { return []any{map[string]any{"key": key, "effect": effect}} }
	claim := func(node, pool string, startup []any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "k-" + node, "labels": map[string]any{"karpenter.sh/nodepool": pool}},
			"spec": map[string]any{"startupTaints": startup}, "status": map[string]any{"nodeName": node}}}
	}
	pool := func(name string, startup []any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"template": map[string]any{"spec": map[string]any{"startupTaints": startup}}}}}
	}
	type objects = []*unstructured.Unstructured
	for name, tc := range map[string]struct {
		claims, pools objects
		want          int
	}{
		"nobody made the node":    {nil, objects{pool("p", taints("t", "NoSchedule"))}, 1},
		"its claim has it":        {objects{claim("n", "p", taints("t", "NoSchedule"))}, nil, 0},
		"with another effect":     {objects{claim("n", "p", taints("t", "NoExecute"))}, nil, 1},
		"with another key":        {objects{claim("n", "p", taints("u", "NoSchedule"))}, nil, 1},
		"another node's claim":    {objects{claim("m", "p", taints("t", "NoSchedule"))}, nil, 1},
		"its pool has it":         {objects{claim("n", "p", nil)}, objects{pool("o", nil), pool("p", taints("t", "NoSchedule"))}, 0},
		"another pool has it":     {objects{claim("n", "p", nil)}, objects{pool("o", taints("t", "NoSchedule")), pool("p", nil)}, 1},
		"neither says so of this": {objects{claim("n", "p", taints("u", "NoSchedule"))}, objects{pool("p", taints("v", "NoSchedule"))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}})
			w.NodeClaims, w.NodePools = tc.claims, tc.pools
			w.Deployed()
			c := w.bench(t, "Deployment")
			if got := c.addToleration(c.Node("n")); len(got) != tc.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A taint for GPUs is meant to be tolerated; of another somebody has to say whether it is.
func TestTheRiskOfATaint(t *testing.T) {
	for key, want := range map[string]diagnosis.Risk{"nvidia.com/gpu": diagnosis.LowRisk, "team": diagnosis.MediumRisk} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}})
		w.Deployed()
		c := w.bench(t, "Deployment")
		if got := c.addToleration(c.Node("n")); len(got) != 1 || got[0].Risk != want {
			t.Errorf("%s: %+v, want %s", key, got, want)
		}
	}
}
