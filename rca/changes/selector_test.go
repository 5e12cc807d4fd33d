package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// Another model of GPU than is asked by name is less than what was asked, where some node has that model;
// a name that no node has is put right.
func TestWhoSettlesForAnotherModel(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		want       bool
	}{
		"there is one":      {"nvidia.com/gpu.product", "B", true},
		"there is none":     {"nvidia.com/gpu.product", "C", false},
		"another's label":   {"zone", "b", false},
		"a cloud's label":   {"cloud.google.com/gke-accelerator", "B", true},
		"a label beside it": {"nvidia.com/gpu.count", "B", false},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{tc.key: "A"}})
		w.AddNode(sim.Node{Name: "m", Labels: map[string]string{"nvidia.com/gpu.product": "B", "cloud.google.com/gke-accelerator": "B", "zone": "b", "nvidia.com/gpu.count": "B"}})
		w.Wait.Spec.NodeSelector = map[string]string{tc.key: tc.value}
		w.Asking(rcatest.List("nvidia.com/gpu", "3"))
		w.Deployed()
		c := w.bench(t, "Deployment")
		got := c.fixSelector(c.Node("n"))
		if less := map[bool]int64{true: 3}[tc.want]; len(got) != 1 || got[0].Settles != tc.want || got[0].Less != less {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The patch of a template has what is changed of its selector, or of its affinity, and nothing
// else: a label that no node has is taken out of it.
func TestPatchesOfSelectors(t *testing.T) {
	zone := func(value string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}}
	}
	const widened = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}}`
	for name, tc := range map[string]struct {
		selector map[string]string
		affinity *corev1.Affinity
		want     string
	}{
		"another value":   {map[string]string{"zone": "a", "team": "x"}, nil, `"nodeSelector":{"zone":"b"}`},
		"nothing of it":   {map[string]string{"pool": "a"}, nil, `"nodeSelector":{"pool":null}`},
		"a wider term":    {nil, zone("a"), widened},
		"a term and more": {map[string]string{"pool": "a"}, zone("a"), widened + `,"nodeSelector":{"pool":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"zone": "b", "team": "x"}})
			w.Wait.Spec.NodeSelector, w.Wait.Spec.Affinity = tc.selector, tc.affinity
			w.Deployed()
			c := w.bench(t, "Deployment")
			got := c.fixSelector(c.Node("n"))
			if len(got) != 1 || len(got[0].Actions) != 1 {
				t.Fatalf("%+v", got)
			}
			if patch, want := string(got[0].Actions[0].Patch), `{"spec":{"template":{"spec":{`+tc.want+`}}}}`; patch != want {
				t.Errorf("%s, want %s", patch, want)
			}
		})
	}
}
