package terminal

import (
	"strings"
	"testing"
	"time"

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
