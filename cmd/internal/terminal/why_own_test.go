package terminal

import (
	"slices"
	"strings"
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

// The root cause has the first row, whether it is one of a node or not.
func TestTheRootStandsFirst(t *testing.T) {
	down := diagnosis.Cause{ID: diagnosis.DriverNotReady, Certainty: diagnosis.Proven, Says: "no driver", Nodes: []string{"b"}}
	full := diagnosis.Cause{ID: diagnosis.GPUsInUse, Certainty: diagnosis.Proven, Says: "held", Nodes: []string{"a"}}
	promised := diagnosis.Cause{ID: diagnosis.ScaleUpStuck, Certainty: diagnosis.Likely, Says: "promised"}
	nodes := []diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{{Cause: full.ID}}}, {Name: "b", Blockers: []diagnosis.Blocker{{Cause: down.ID}}}}
	for _, tc := range []struct {
		causes []diagnosis.Cause
		want   []string
	}{
		{[]diagnosis.Cause{down, promised, full}, []string{"no driver", "promised", "held"}},
		{[]diagnosis.Cause{promised, down, full}, []string{"promised", "no driver", "held"}},
		{[]diagnosis.Cause{full, promised, down}, []string{"held", "promised", "no driver"}},
	} {
		lines := reasons{style: style{Width: 120}}.why(diagnosis.Diagnosis{Causes: tc.causes, Nodes: nodes})
		var got []string
		for _, line := range lines {
			for _, says := range []string{"no driver", "promised", "held"} {
				if strings.Contains(line, says) {
					got = append(got, says)
				}
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v, want %v\n%s", got, tc.want, strings.Join(lines, "\n"))
		}
	}
}
