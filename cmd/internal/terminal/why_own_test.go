package terminal

import (
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// What a cause says of the pod stands before what it says of nodes, and is shown though these have rows of their own.
func TestWhatIsSaidOfNoNode(t *testing.T) {
	const id = diagnosis.Unknown
	on := func(says ...string) []diagnosis.NodeBlockers {
		out := []diagnosis.NodeBlockers{{Name: "other"}}
		for _, s := range says {
			out = append(out, diagnosis.NodeBlockers{Name: "n", Says: map[diagnosis.CauseID]string{id: s}})
		}
		return out
	}
	for name, tc := range map[string]struct {
		says  string
		nodes []diagnosis.NodeBlockers
		named []string
		want  string
	}{
		"of no node":               {"a policy denies it", on(), nil, "a policy denies it"},
		"of the pod, and of nodes": {"a policy denies it; no GPU (2 nodes); sick (n)", on("sick", "no GPU"), []string{"n"}, "a policy denies it"},
		"of nodes alone":           {"no GPU (2 nodes); sick (n)", on("sick", "no GPU"), []string{"n"}, ""},
		"in the other order":       {"no GPU (2 nodes); sick (n)", on("no GPU", "sick"), []string{"n"}, ""},
		"of all nodes alike":       {"no GPU", on(), []string{"n"}, ""},
	} {
		d := diagnosis.Diagnosis{Nodes: tc.nodes}
		if got := ofNoNode(d, diagnosis.Cause{ID: id, Says: tc.says, Nodes: tc.named}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
