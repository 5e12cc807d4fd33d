package guard

import (
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Two plans want the same room when one changes or fills a node of the other, or both write to
// or stop the same object, or they are for the same pods.
func TestSameRoom(t *testing.T) {
	fills := func(i int, node string) *v1alpha1.Remediation {
		r := remaking(i, 0)
		r.Spec.Node, r.Spec.Actions[0].Target.UID = node, hex(i)
		return r
	}
	same := planFor(2, "gpu-2")
	same.Spec.Incident = planFor(1, "").Spec.Incident
	victim := planFor(2, "gpu-2")
	victim.Spec.Actions[0].Relayout.Victims = []diagnosis.Target{{Kind: "Pod", Namespace: "ml", Name: "training-0", UID: "pod-1-0"}}
	for _, tc := range []struct {
		name string
		a, b *v1alpha1.Remediation
		want string
	}{
		{"other nodes", planFor(1, "gpu-1"), planFor(2, "gpu-2"), ""},
		{"one node", planFor(1, "gpu-1"), planFor(2, "gpu-1"), "node gpu-1"},
		{"one changes what the other fills", planFor(1, "gpu-1"), fills(2, "gpu-1"), "node gpu-1"},
		{"both fill it", fills(1, "gpu-1"), fills(2, "gpu-1"), "node gpu-1"},
		{"they fill others", fills(1, "gpu-1"), fills(2, "gpu-2"), ""},
		{"no node is told", fills(1, ""), fills(2, ""), ""},
		{"the same Job", remaking(1, 0), remaking(2, 0), "job ml/training"},
		{"one stops who the other evicts", remaking(1, 1), victim, "pod ml/training-0"},
		{"one incident", planFor(1, "gpu-1"), same, "incident gpu-0000000001"},
	} {
		if got := SameRoom(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if got := SameRoom(tc.b, tc.a); (got == "") != (tc.want == "") {
			t.Errorf("%s, the other way round: %q, want %q", tc.name, got, tc.want)
		}
	}
}
