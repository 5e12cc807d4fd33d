package knowledge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ended(plan string, runs bool, minute int) Outcome {
	return Outcome{Incident: "gpu-0123456789", Workload: "Job ml/training", Headline: "ml/training waits: no 2g.10gb", Cause: "MIGLayoutMismatch", Fix: "RepartitionGPU", Plan: plan,
		Title: "repartition gpu-1/GPU 0 to all-2g.10gb, evicting 3 pods", By: []string{"ada", "bob"}, Runs: runs, Why: "MIG manager says failed", Took: 4*time.Minute + 12*time.Second, Evicted: 3,
		At: day("2026-11-01").Add(time.Duration(minute) * time.Minute), Layouts: []Layout{{"gpu-1", "all-1g.5gb", "all-2g.10gb"}}}
}

// What became of a plan is a document, once, that outlives the plan and the process, is found
// by what it was about, and can be forgotten.
func TestOutcomesAreDocuments(t *testing.T) {
	dir := t.TempDir()
	imports := func(all []Outcome, want Import) {
		t.Helper()
		l, err := EditLibrary(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		done, err := l.Import(t.Context(), Outcomes(func(context.Context) ([]Outcome, error) { return all, nil }), "outcome", "the cluster", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{want.Added, want.Same, want.Changed, want.Removed}, []int{done.Added, done.Same, done.Changed, done.Removed}); diff != "" {
			t.Errorf("%+v: %s", done, diff)
		}
	}
	first, again, other := ended("aa", false, 0), ended("aa", true, 9), ended("bb", true, 5)
	imports([]Outcome{first, other}, Import{Added: 2})
	imports([]Outcome{first, other, again}, Import{Added: 1, Same: 2})
	imports([]Outcome{again}, Import{Same: 1}) // the cluster has forgotten the others
	l, err := EditLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hits, err := l.Search(t.Context(), []string{"MIGLayoutMismatch", "repartition gpu-1 all-2g.10gb"}, 5)
	if err != nil || len(hits) != 3 {
		t.Fatalf("%+v %v", hits, err)
	}
	hits[0].Score = 0
	want := Hit{Source: "outcome", Title: "RepartitionGPU for MIGLayoutMismatch", Who: "ada, bob", At: again.At,
		Quote: "repartition gpu-1/GPU 0 to all-2g.10gb, evicting 3 pods: the pod ran after 4m12s, 3 evicted"}
	if diff := cmp.Diff(want, hits[0]); diff != "" {
		t.Error(diff)
	}
	if !again.Is(hits[0]) || again.Is(hits[1]) || again.Is(Hit{Source: "slack", Title: hits[0].Title, At: again.At}) {
		t.Error("it is not known again")
	}
	if n, err := l.Forget(t.Context(), strings.TrimPrefix(first.Document().ID, "outcome/")); n != 1 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	if n, err := l.Forget(t.Context(), "outcome"); n != 2 || err != nil || l.Len() != 0 {
		t.Errorf("forgot %d, %v, %d are left", n, err, l.Len())
	}
	if _, err := l.Import(t.Context(), Outcomes(func(context.Context) ([]Outcome, error) { return nil, errors.New("forbidden") }), "outcome", "", time.Time{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Error(err)
	}
}
