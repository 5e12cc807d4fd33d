package rca

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
)

// edited is a scenario's dump with one text in the place of another.
func edited(t *testing.T, scenario, old, by string) *cluster.State {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "scenarios", scenario, "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	after := strings.Replace(string(text), old, by, 1)
	if after == string(text) {
		t.Fatalf("%s has no %q", scenario, old)
	}
	if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := dump.Read([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// The API takes one constraint for a key and a way of it: where the wish is there
// already, what is required goes.
func TestWishIsThereAlready(t *testing.T) {
	const required = "    - labelSelector: {}\n      maxSkew: 1\n      topologyKey: example.com/rack\n      whenUnsatisfiable: DoNotSchedule\n"
	wish := strings.NewReplacer("maxSkew: 1", "maxSkew: 5", "DoNotSchedule", "ScheduleAnyway").Replace(required)
	found, err := Diagnose(t.Context(), edited(t, "TopologySpreadConflict", required, wish+required), Options{})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	f := found[0].Fixes[0]
	const want = `{"spec":{"topologySpreadConstraints":[{"$patch":"replace"},{"maxSkew":5,"topologyKey":"example.com/rack","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{}}]}}`
	if f.Proof.Verdict != diagnosis.Schedules || len(f.Actions) != 1 || string(f.Actions[0].Patch) != want {
		t.Errorf("%s %s", f.Proof.Verdict, f.Actions[0].Patch)
	}
}
