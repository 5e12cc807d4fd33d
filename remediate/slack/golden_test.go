package slack_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/notifytest/scenarios"
	"github.com/unpend/unpend/remediate/slack"
)

var update = flag.Bool("update", false, "write the golden messages")

// Every cause is told as people read it in the channel, within Slack's limits: a headline
// that fits a phone, at most twelve blocks, a next command.
func TestGoldenMessages(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	n := w.New(t, clock, slog.New(slog.DiscardHandler))
	var got strings.Builder
	told := 0
	for _, c := range scenarios.OneOfEach(t, "../..") {
		if err := clock.Sleep(t.Context(), time.Hour); err != nil { // no storm
			t.Fatal(err)
		}
		if err := n.Notify(t.Context(), c.Proposal); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		told++
		all := w.Server.Messages("")
		m := all[len(all)-1]
		var blocks []any
		if err := json.Unmarshal(m.Blocks, &blocks); err != nil || len(blocks) > 12 || len(all) != told {
			t.Errorf("%s: %d blocks, %d messages after %d, %v", c.Name, len(blocks), len(all), told, err)
		}
		shown := m.Shown()
		first, _, _ := strings.Cut(shown, "\n")
		if len([]rune(first)) > 80 || !strings.Contains(shown, "kubectl unpend ") {
			t.Errorf("%s: its headline has %d characters, or no command follows:\n%s", c.Name, len([]rune(first)), shown)
		}
		fmt.Fprintf(&got, "=== %s\n%s", c.Name, shown)
		for _, line := range slack.Preview(c.Proposal, "prod", true) {
			if !strings.Contains(shown, line) && !strings.HasPrefix(line, "[ ") {
				t.Errorf("%s: the preview has %q, the message has\n%s", c.Name, line, shown)
			}
		}
	}
	const golden = "testdata/causes.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("with -update it is written again: %s", diff)
	}
}
