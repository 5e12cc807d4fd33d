package paging

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/watcher/incident"
)

func TestPromise(t *testing.T) { t.Run("R26", promiseR26) }

var odd = []string{"<!channel>", "@here", "\u202egnp.exe", "\x1b[31mred", "\u200b", "🔥", "é", `"`, "\\", "\n", "<b>", "x", "gpu-node-1", strings.Repeat("long ", 400), "\xff\xfe", "ml", "𝔘"}

// anything is a finding of texts that anybody may have written.
func anything(r *rand.Rand, id string) notice.Proposal {
	text := func(most int) string {
		var s strings.Builder
		for range r.IntN(most + 1) {
			s.WriteString(odd[r.IntN(len(odd))])
		}
		return s.String()
	}
	p := notifytest.Finding(id, text(30))
	d := p.Finding
	d.Workload = incident.Ref{Kind: text(2), Namespace: text(2), Name: text(3)}
	d.Requests = map[string]string{text(2): text(2), "nvidia.com/gpu": "1"}
	for range r.IntN(40) {
		d.Causes = append(d.Causes, diagnosis.CauseSummary{ID: diagnosis.CauseID(text(1)), Certainty: diagnosis.Likely, Says: text(10), Nodes: []string{text(1)}, NodeCount: 1})
		d.Nodes = append(d.Nodes, diagnosis.NodeGroup{Names: []string{text(1)}, Count: 15, Blockers: []diagnosis.Blocker{{Plugin: text(1), Reason: text(10)}}})
		d.Fixes = append(d.Fixes, diagnosis.FixSummary{Title: text(10), Steps: []string{text(10)}, Commands: []string{text(10)}})
	}
	if r.IntN(3) == 0 {
		p.Plans = []notice.Notice{{What: notice.Parked, Incident: id, Plan: text(3), Node: text(2), Title: text(5), Reason: text(20), Since: noon, Approvers: []string{text(2)}}}
	}
	return p
}

// Whatever anybody writes into names and messages of a cluster, each vendor takes it: its
// schema says so, and nothing that turns or hides text is left in it.
func promiseR26(t *testing.T) {
	const findings = 100
	told := 0
	for _, k := range kinds {
		r, clock := rand.New(rand.NewPCG(1, 2)), notifytest.NewClock() //nolint:gosec // the same each time
		f := newFake(t, clock, k)
		n := f.pager(t, clock, When{Everything: true})
		for i := range findings {
			if err := n.Notify(t.Context(), anything(r, fmt.Sprintf("gpu-%010x", i))); err != nil {
				t.Fatalf("%s, finding %d: %v", k.name, i, err)
			}
		}
		all := f.Messages()
		for _, m := range all {
			if strings.ContainsAny(m.Text, "\u202e\x1b\u200b") {
				t.Errorf("%s: what turns or hides text is shown: %q", k.name, m.Text)
			}
		}
		told += len(all)
	}
	fmt.Printf("R26 %d/%d, findings of any text told to %d paging services, 0 over a limit\n", told, findings*len(kinds), len(kinds))
	if told != findings*len(kinds) {
		t.Errorf("%d told", told)
	}
}
