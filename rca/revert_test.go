package rca

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Where the GPUs have what no entry makes, what a plan of ours has found or made on the
// node is the last layout that worked: the newest that speaks of it, and not the one that
// MIG manager fails on.
func TestRevertToWhatPlansTell(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "scenarios", "MIGConfigStuck-six-minutes", "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	lost := strings.Replace(string(text), `    - {profile: "1g.5gb", id: 7, start: 6, size: 1, uuids: [MIG-gpu-1-0-7]}`+"\n", "", 1)
	if err := os.WriteFile(file, []byte(lost), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := dump.Read([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	past := func(at int, runs bool, node, was, became string) knowledge.Outcome {
		return knowledge.Outcome{Runs: runs, At: time.Unix(int64(at), 0), Layouts: []knowledge.Layout{{Node: node, Was: was, Became: became}}}
	}
	for _, tc := range []struct {
		name string
		past []knowledge.Outcome
		want string // empty: by hand
	}{
		{"nothing", nil, ""},
		{"what was found", []knowledge.Outcome{past(1, true, "gpu-1", "all-1g.5gb", "all-2g.10gb")}, "all-1g.5gb"},
		{"what was made", []knowledge.Outcome{past(1, true, "gpu-1", "all-1g.5gb", "all-balanced")}, "all-balanced"},
		{"what failed was not made", []knowledge.Outcome{past(1, false, "gpu-1", "all-1g.5gb", "all-balanced")}, "all-1g.5gb"},
		{"the newest", []knowledge.Outcome{past(1, true, "gpu-1", "all-1g.5gb", "all-3g.20gb"), past(2, true, "gpu-1", "all-3g.20gb", "all-balanced")}, "all-balanced"},
		{"of another node", []knowledge.Outcome{past(1, true, "gpu-2", "all-1g.5gb", "all-balanced")}, ""},
		{"no entry by now", []knowledge.Outcome{past(1, true, "gpu-1", "ours", "all-2g.10gb")}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found, err := Diagnose(t.Context(), st, Options{Outcomes: func(context.Context) ([]knowledge.Outcome, error) { return tc.past, nil }})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			f := found[0].Fixes[0]
			verdict := diagnosis.Unproven
			if tc.want == "all-balanced" { // it has the 2g that is waited for
				verdict = diagnosis.Schedules
			}
			if f.Kind != diagnosis.RevertMIGConfig || f.Proof.Verdict != verdict || f.Automatic != (tc.want != "") {
				t.Fatalf("%+v", f)
			}
			if tc.want == "" {
				if len(f.Actions) != 0 || !strings.HasPrefix(f.Proof.Why, "by hand: ") {
					t.Errorf("%+v", f)
				}
				return
			}
			if r := f.Actions[0].Relayout; r.Config != tc.want || r.First != "" || !reflect.DeepEqual(r.GPUs, []int{0}) || f.Title != `take gpu-1 back to "`+tc.want+`", the last layout that worked` {
				t.Errorf("%q: %+v", f.Title, r)
			}
		})
	}
}
