package rca

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A node that is quarantined is opened by no plan while its GPU is sick: a person sees to it.
func TestSickQuarantinedStaysClosed(t *testing.T) {
	st, err := dump.Read([]string{filepath.Join("..", "testdata", "scenarios", "NodeCordoned")}, nil)
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
		if f.Kind == diagnosis.Manual && !f.Automatic && len(f.Actions) == 0 && strings.Contains(f.Title, ", which is quarantined by unpend: GPU 0 of it") {
			seen = true
		}
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
	st, err := dump.Read([]string{filepath.Join("..", "testdata", "scenarios", "NodeCordoned")}, nil)
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

// What is offered about a node that somebody has taken names the command that gives it back.
func TestTakenIsReleased(t *testing.T) {
	for name, c := range map[string]struct{ mark, title, first, then string }{
		"parked":        {`{"op":"0123456789","id":"y","parked":"it failed"}`, "see to %s, which is parked by unpend: it failed", "kubectl describe node %s", "kubectl unpend release %s"},
		"somebody's":    {`hands off`, "see to %s, which is marked by somebody else: annotation unpend.dev/operation is not one of ours", "kubectl describe node %s", "kubectl unpend release %s"},
		"of a plan now": {`{"op":"0123456789","id":"y"}`, "wait until unpend's plan 0123456… for %s has ended", "kubectl get remediation 0123456789 -w", "kubectl unpend release %s  # refused while somebody works on it"},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := dump.Read([]string{filepath.Join("..", "testdata", "scenarios", "NodeCordoned")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			closed := ""
			for _, n := range st.Nodes {
				if n.Spec.Unschedulable {
					closed, n.Annotations = n.Name, map[string]string{diagnosis.OperationAnnotation: c.mark}
				}
			}
			found, err := Diagnose(t.Context(), st, Options{})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			i := slices.IndexFunc(found[0].Fixes, func(f diagnosis.Fix) bool { return f.Title == strings.ReplaceAll(c.title, "%s", closed) })
			if i < 0 {
				t.Fatalf("%+v", found[0].Fixes)
			}
			want := []string{strings.ReplaceAll(c.first, "%s", closed), strings.ReplaceAll(c.then, "%s", closed)}
			if f := found[0].Fixes[i]; f.Automatic || !slices.Equal(f.Commands, want) {
				t.Errorf("automatic %v, commands %q, want %q", f.Automatic, f.Commands, want)
			}
		})
	}
}
