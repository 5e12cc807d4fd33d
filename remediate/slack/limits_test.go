package slack_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/watcher/incident"
)

// A thousand findings: each is posted, with its details, within Slack's limits, and calls
// nobody (R26, S8). The server complains where one is not.
func promiseR26(t *testing.T) {
	const workspaces, findings = 20, 50
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	posted := 0
	for range workspaces {
		clock := notifytest.NewClock()
		w := newWorkspace(t, clock)
		n := w.New(t, clock, slog.New(slog.DiscardHandler))
		for i := range findings {
			if err := clock.Sleep(t.Context(), 10*time.Minute); err != nil { // no storm
				t.Fatal(err)
			}
			if err := n.Notify(t.Context(), notifytest.Anything(r, fmt.Sprintf("gpu-%010x", i), clock.Now())); err != nil {
				t.Fatalf("finding %d: %v", i, err)
			}
		}
		for _, m := range w.Server.Messages("") {
			if posted++; len(w.Server.Messages(m.TS)) == 0 {
				t.Errorf("%s has no details", m.TS)
			}
			if strings.ContainsAny(m.Shown(), "\u202e\x1b\u2066\u200b") {
				t.Errorf("what turns or hides text is shown: %q", m.Shown())
			}
		}
	}
	if posted != workspaces*findings {
		t.Errorf("%d messages of %d findings", posted, workspaces*findings)
	}
	fmt.Printf("R26 %d/%d, findings of any text posted in Slack, 0 over a limit\n", posted, workspaces*findings)
	fmt.Printf("S8 %d/%d, messages in Slack with whatever names hold, 0 mentions, 0 links, 0 marks\n", posted, workspaces*findings)
}

// Of 600 nodes for thirty reasons, each is counted once.
func TestCountsAddUp(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	p := notifytest.Finding("gpu-0123456789", "waits")
	d := p.Finding
	d.Causes, d.Nodes, d.NodeCount, d.Workload = nil, nil, 600, incident.Ref{Kind: "Job", Namespace: "ml", Name: "x"}
	all := diagnosis.Catalogue()
	left := 600
	for i := range 30 {
		d.Causes = append(d.Causes, diagnosis.CauseSummary{ID: all[i], Certainty: diagnosis.Likely, Says: fmt.Sprint("because ", i), NodeCount: i + 1})
		d.Nodes = append(d.Nodes, diagnosis.NodeGroup{Names: []string{fmt.Sprint("n", i)}, Count: i + 1, Blockers: []diagnosis.Blocker{{Plugin: "p", Cause: all[i]}}})
		left -= i + 1
	}
	told(t, w.New(t, clock, nil), p)
	want := fmt.Sprintf("• 1 node  n0  because 0 (%s, likely)\n• 2 nodes  because 1 (%s, likely)\n• 3 nodes  because 2 (%s, likely)\n• 594 nodes  for other reasons\n", all[0], all[1], all[2])
	if got := w.Server.Messages("")[0].Shown(); !strings.Contains(got, want) || left < 0 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
