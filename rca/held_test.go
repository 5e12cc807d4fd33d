package rca

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// What guard-rails would hold back now comes behind what they would not, and says why: on
// another node first, then another fix that is proved. What they hold back altogether stays
// in its order, and what they refuse is not offered to be carried out.
func TestHeldBack(t *testing.T) {
	on := func(node string, refused bool) diagnosis.Guard {
		return func(_ incident.Incident, f diagnosis.Fix) diagnosis.Held {
			if node == "" && len(f.Cost.Nodes) > 0 || slices.Contains(f.Cost.Nodes, node) {
				return diagnosis.Held{Why: "it was changed of late", Refused: refused}
			}
			return diagnosis.Held{}
		}
	}
	late := func(_ incident.Incident, f diagnosis.Fix) diagnosis.Held { // known once the actions are
		if slices.ContainsFunc(f.Actions, func(a diagnosis.Action) bool { return a.Relayout != nil && a.Target.Name == "gpu-1" }) {
			return diagnosis.Held{Why: "it would undo a plan", Refused: true}
		}
		return diagnosis.Held{}
	}
	stop := func(incident.Incident, diagnosis.Fix) diagnosis.Held { return diagnosis.Held{Why: "paused"} }
	const repartition, request = diagnosis.RepartitionGPU, diagnosis.ChangeRequest
	for name, tc := range map[string]struct {
		guard     diagnosis.Guard
		kinds     []diagnosis.FixKind // of the fixes, in order
		node      string              // of the repartition
		automatic bool
		held      string
		why       string
	}{
		"nothing":          {nil, []diagnosis.FixKind{repartition, request}, "gpu-1", true, "", ""},
		"one node":         {on("gpu-1", true), []diagnosis.FixKind{repartition, request}, "gpu-2", true, "", ""},
		"its actions":      {late, []diagnosis.FixKind{repartition, request}, "gpu-2", true, "", ""},
		"all, refused":     {on("", true), []diagnosis.FixKind{request, repartition}, "gpu-1", false, "it was changed of late", "; refused now: it was changed of late"},
		"all, for a while": {on("", false), []diagnosis.FixKind{request, repartition}, "gpu-1", true, "it was changed of late", "; held back now: it was changed of late"},
		"every fix":        {stop, []diagnosis.FixKind{repartition, request}, "gpu-1", true, "paused", "; held back now: paused"},
	} {
		t.Run(name, func(t *testing.T) {
			st := allOneG(t)
			found, err := Diagnose(t.Context(), st, Options{Guard: func(context.Context, *cluster.State) (diagnosis.Guard, error) { return tc.guard, nil }})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			var kinds []diagnosis.FixKind
			for i, f := range found[0].Fixes {
				if kinds = append(kinds, f.Kind); f.ID != i+1 {
					t.Errorf("fix %d is number %d", i+1, f.ID)
				}
				if f.Kind != repartition {
					continue
				}
				if f.Proof.Verdict != diagnosis.Schedules || f.Proof.Node != tc.node || f.Automatic != tc.automatic || f.Held != tc.held || !strings.HasSuffix(f.Proof.Why, tc.why) || tc.why == "" && strings.Contains(f.Proof.Why, " now: ") {
					t.Errorf("%+v", f)
				}
				if len(f.Actions) != 1 || len(f.Steps) == 0 || len(f.Plan) != 64 {
					t.Errorf("it is not written out: %+v", f)
				}
			}
			if !slices.Equal(kinds, tc.kinds) {
				t.Errorf("%v, want %v", kinds, tc.kinds)
			}
		})
	}
}

// Who would stop by a fix although a budget lets nobody go is told with the fix, also of a dump
// that knows no guard-rails: it is not offered to be carried out, and who does it by hand is
// told as well. Where the budget is another's nothing changes.
func TestBudgetsAreForeseen(t *testing.T) {
	with := func(scenario string, labels map[string]string) []diagnosis.Fix {
		st, err := dump.Read([]string{filepath.Join("..", "testdata", "scenarios", scenario)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range st.Pods {
			if !slices.ContainsFunc(st.PDBs, func(b *policyv1.PodDisruptionBudget) bool { return b.Namespace == p.Namespace }) {
				st.PDBs = append(st.PDBs, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "keep"},
					Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
					Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 2}})
			}
		}
		found, err := Diagnose(t.Context(), st, Options{})
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		return found[0].Fixes
	}
	held, told := 0, 0
	for _, scenario := range []string{"Workload-job-selector", "Workload-deployment-full", "Workload-deployment-surge", "Workload-statefulset-ordinal"} {
		others := with(scenario, map[string]string{"app": "of-nobody"})
		for _, f := range others {
			if strings.Contains(f.Held+f.Proof.Why, "PodDisruptionBudget") {
				t.Errorf("%s: %q is held by another's budget: %s", scenario, f.Title, f.Proof.Why)
			}
		}
		for _, f := range with(scenario, nil) {
			says := strings.Contains(f.Proof.Why, "a PodDisruptionBudget ") && strings.Contains(f.Proof.Why, "(keep allows 0 more)")
			switch {
			case len(f.Cost.Restarts) == 0 || f.Proof.Verdict == diagnosis.Refuted:
				continue
			case !says || f.Automatic:
				t.Errorf("%s: %q stops %v, automatic %v: %s", scenario, f.Title, f.Cost.Restarts, f.Automatic, f.Proof.Why)
			case f.Held != "":
				held++
			default:
				told++
			}
		}
	}
	if held == 0 || told == 0 {
		t.Errorf("%d held, %d told", held, told)
	}
	t.Logf("%d held, %d told to who does it by hand", held, told)
}

func allOneG(t *testing.T) *cluster.State {
	t.Helper()
	st, err := dump.Read([]string{filepath.Join("..", "testdata", "scenarios", "all-1g")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// Guard-rails that cannot be read hold nothing back, and that is said.
func TestGuardsUnread(t *testing.T) {
	found, err := Diagnose(t.Context(), allOneG(t), Options{Guard: func(context.Context, *cluster.State) (diagnosis.Guard, error) { return nil, errors.New("forbidden") }})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if f := found[0].Fixes[0]; f.Kind != diagnosis.RepartitionGPU || !f.Automatic || f.Held != "" {
		t.Errorf("%+v", f)
	}
	if want := "guard-rails: forbidden; which fixes they would refuse now is not known"; !slices.Contains(found[0].Unread, want) {
		t.Errorf("%q is not in %q", want, found[0].Unread)
	}
}
