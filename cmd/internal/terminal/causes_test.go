package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notifytest/scenarios"
)

// Every cause is told at a terminal of 80 columns as people read it, without colour, and with
// the characters of a terminal that has no others.
func TestGoldenCauses(t *testing.T) {
	all := scenarios.OneOfEach(t, "../../..")
	for name, look := range map[string]style{"causes.80.txt": {Width: 80}, "causes.ascii.txt": {Width: 80, ASCII: true}} {
		var got strings.Builder
		for _, c := range all {
			o := Options{style: look, Now: c.Diagnosis.Pods.Since.Add(14 * time.Minute)}
			shown := render(t, c.Diagnosis, o)
			checkShape(t, shown, o)
			if strings.Contains(shown, "\x1b") || look.ASCII && strings.ContainsFunc(shown, func(r rune) bool { return r > '~' }) {
				t.Errorf("%s: it has what such a terminal does not show:\n%s", c.Name, shown)
			}
			if !strings.Contains(shown, string(c.Diagnosis.Causes[0].ID)) || !strings.Contains(shown, "kubectl unpend ") && !strings.Contains(shown, "Next: ") {
				t.Errorf("%s: it has no cause, or no next command:\n%s", c.Name, shown)
			}
			got.WriteString("=== " + c.Name + "\n" + shown)
		}
		golden(t, name, []byte(got.String()))
	}
}

// The next command is one that does something: what is said before it is said beside it.
func TestTheNextCommandIsNoRemark(t *testing.T) {
	for _, tc := range []struct {
		commands      []string
		command, hint string
	}{
		{[]string{"kubectl get pods"}, "kubectl get pods", ""},
		{[]string{"# on the machine:", "systemctl restart crio", "# x"}, "systemctl restart crio", "on the machine"},
		{[]string{"# only a remark"}, "# only a remark", ""},
	} {
		if command, hint := firstOf(tc.commands); command != tc.command || hint != tc.hint {
			t.Errorf("%q: %q, %q", tc.commands, command, hint)
		}
	}
}

// A row of the tree says what keeps the pod from its own nodes, where the cause says something else of others.
func TestARowSaysWhatHoldsForItsNodes(t *testing.T) {
	tainted := func(name, says string, more ...diagnosis.Blocker) diagnosis.NodeBlockers {
		return diagnosis.NodeBlockers{Name: name, Blockers: append(more, diagnosis.Blocker{Plugin: "TaintToleration", Cause: diagnosis.UntoleratedTaint}), Says: map[diagnosis.CauseID]string{diagnosis.UntoleratedTaint: says}}
	}
	d := diagnosis.Diagnosis{
		Causes: []diagnosis.Cause{{ID: diagnosis.UntoleratedTaint, Certainty: diagnosis.Proven, Says: "taint a (2 nodes); taint b (n3)"}, {ID: diagnosis.GPUsInUse, Certainty: diagnosis.Proven, Says: "held"}},
		Nodes:  []diagnosis.NodeBlockers{tainted("n1", "taint a"), tainted("n2", "taint a"), tainted("n3", "taint b", diagnosis.Blocker{Cause: diagnosis.GPUsInUse})},
	}
	o := reasons{style: style{Width: 120}}
	got := strings.Join(o.why(d), "\n")
	for _, want := range []string{"2 nodes  taint a ", "1 node   taint b; also held"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q:\n%s", want, got)
		}
	}
	d.Nodes[1] = tainted("n2", "taint c")
	if got := strings.Join(o.why(d), "\n"); !strings.Contains(got, "2 nodes  taint a (2 nodes); taint b (n3)") {
		t.Errorf("of nodes that differ all is said:\n%s", got)
	}
}

// Words of which the middle was left out lose more of it where there is less room, and keep both ends.
func TestWordsKeepBothEnds(t *testing.T) {
	const words = "kai says that the resources were not found for it in all … 3 nodes: no node in the default node-pool has GPUs"
	for _, tc := range []struct {
		says          string
		beside, lines int
		want          string
	}{
		{words, 0, 4, words},
		{words, 0, 2, "kai says that the … no node in the default node-pool has GPUs"},
		{words, 20, 2, "kai says that the … node-pool has GPUs"},
		{"nothing was left out of this, which does not fit into two lines of it", 0, 2, "nothing was left out of this, which does not fit into two lines of it"},
	} {
		if got := (style{}).ofBothEnds(tc.says, tc.beside, 30, tc.lines); got != tc.want {
			t.Errorf("%d lines: %q, want %q", tc.lines, got, tc.want)
		}
	}
}
