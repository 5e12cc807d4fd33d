// Package scenarios are the findings of the scenarios that this repository holds, one of
// each cause, for the golden texts of every place that people are told in.
package scenarios

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// Case is what is told of a scenario.
type Case struct {
	Name string // its folder's
	notice.Proposal
	Diagnosis diagnosis.Diagnosis // the whole of it, as a terminal shows it
}

// OneOfEach is a case for every cause of the catalogue, which is the root cause there; root is
// the repository's, from the folder of the test. Each is an incident of its own.
func OneOfEach(t *testing.T, root string) (all []Case) {
	t.Helper()
	for _, id := range diagnosis.Catalogue() {
		found, err := filepath.Glob(filepath.Join(root, "testdata", "scenarios", string(id)+"*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if name := filepath.Base(f); name != string(id) && !strings.HasPrefix(name, string(id)+"-") {
				continue
			}
			c := read(t, f)
			if c.Finding.Causes[0].ID != id {
				continue
			}
			c.Incident = fmt.Sprintf("gpu-%010x", len(all)) // some are of the same workload
			c.Finding.Incident, c.Diagnosis.Incident = c.Incident, c.Incident
			all = append(all, c)
			break
		}
		if n := len(all); n == 0 || all[n-1].Finding.Causes[0].ID != id {
			t.Errorf("of %s there is no scenario of which it is the root cause, and no text: add one", id)
		}
	}
	return all
}

// read is the first finding of a dump, whole and as it travels.
func read(t *testing.T, folder string) Case {
	t.Helper()
	st, err := dump.Read([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := rca.Diagnose(t.Context(), st, rca.Options{Measure: measured(t, folder)})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d findings, %v", folder, len(found), err)
	}
	body, err := found[0].Message()
	if err != nil {
		t.Fatal(err)
	}
	var s diagnosis.Summary
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatal(err)
	}
	return Case{filepath.Base(folder), notice.Proposal{Incident: s.Incident, Finding: &s, Read: s.Pods.Since.Add(time.Minute)}, found[0]}
}
