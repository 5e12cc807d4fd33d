package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

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
