package rca_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// FuzzDiagnose: whatever a dump holds that can be read, its diagnoses owe the same.
func FuzzDiagnose(f *testing.F) {
	paths, err := filepath.Glob("../testdata/scenarios/*/cluster.yaml")
	if err != nil || len(paths) < 50 {
		f.Fatalf("%d scenarios, %v", len(paths), err)
	}
	for _, path := range controlplane.Some(paths, 8) { // all of them are asked as scenarios too
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 16<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := dump.Read([]string{"-"}, bytes.NewReader(data))
		if err != nil {
			return
		}
		found, err := rca.Diagnose(t.Context(), st, rca.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			if n := utf8.RuneCountInString(d.Headline); n == 0 || n > 80 || len(d.Causes) == 0 || len(d.Fixes) == 0 || len(d.Nodes) != len(st.Nodes) {
				t.Errorf("headline %q, %d causes, %d fixes, %d of %d nodes", d.Headline, len(d.Causes), len(d.Fixes), len(d.Nodes), len(st.Nodes))
			}
			for _, x := range d.Fixes {
				if len(x.Plan) != 64 || x.Proof.Verdict == "" || x.Proof.Verdict == diagnosis.Refuted || x.Proof.Why == "" {
					t.Errorf("fix %q: plan %q, verdict %q, %q", x.Title, x.Plan, x.Proof.Verdict, x.Proof.Why)
				}
			}
			if _, err := json.Marshal(d); err != nil {
				t.Error(err)
			}
		}
	})
}
