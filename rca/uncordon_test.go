package rca

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A node that is quarantined is opened by no plan while its GPU is sick: a person sees to it.
func TestSickQuarantinedStaysClosed(t *testing.T) {
	st, err := cluster.FromFiles([]string{filepath.Join("..", "testdata", "scenarios", "NodeCordoned")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range st.Nodes {
		if geo := st.Geometries[n.Name]; n.Spec.Unschedulable {
			n.Annotations = map[string]string{diagnosis.OperationAnnotation: `{"op":"x","id":"y","quarantined":"GPU 0 of it"}`}
			if geo == nil {
				t.Fatal("nothing reports its GPUs")
			}
			geo.Report.GPUs[0].Healthy = false
		}
	}
	found, err := Diagnose(t.Context(), st, Options{})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	seen := false
	for _, f := range found[0].Fixes {
		seen = seen || f.Kind == diagnosis.Manual && !f.Automatic && len(f.Actions) == 0 && strings.Contains(f.Title, ", which is quarantined by unpend: GPU 0 of it")
		if slices.Contains(f.Kinds, diagnosis.UncordonNode) {
			t.Errorf("%q is offered", f.Title)
		}
	}
	if !seen {
		t.Errorf("%+v", found[0].Fixes)
	}
}

// Who opens a node that is quarantined is told to see to its GPU first.
func TestUncordonOfQuarantined(t *testing.T) {
	const mark = `{"op":"x","id":"y","quarantined":"quarantine gpu-1"}`
	st, err := cluster.FromFiles([]string{filepath.Join("..", "testdata", "scenarios", "NodeCordoned")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range st.Nodes {
		if n.Spec.Unschedulable {
			n.Annotations = map[string]string{diagnosis.OperationAnnotation: mark}
		}
	}
	found, err := Diagnose(t.Context(), st, Options{})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	i := slices.IndexFunc(found[0].Fixes, func(f diagnosis.Fix) bool { return f.Kind == diagnosis.UncordonNode })
	if i < 0 {
		t.Fatalf("%+v", found[0].Fixes)
	}
	if f := found[0].Fixes[i]; len(f.Steps) != 1 || !strings.HasSuffix(f.Steps[0], " (see first that its GPU is mended)") || f.Risk != "high" {
		t.Errorf("%s %q", f.Risk, f.Steps)
	}
}
