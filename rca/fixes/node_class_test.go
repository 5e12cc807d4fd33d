package fixes

import (
	"context"
	"math"
	"testing"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// What one incident takes grows with the nodes, and no faster: by allocations, since a
// clock tells of the machine too.
func TestIncidentGrowth(t *testing.T) {
	const few, times = 160, 4
	for _, asks := range []string{"nvidia.com/mig-2g.10gb", "nvidia.com/gpu", "nvidia.com/mig-9g.90gb"} {
		a, b := incidentAllocs(t, few, asks), incidentAllocs(t, few*times, asks)
		if exponent := math.Log(b/a) / math.Log(times); exponent > 1.05 {
			t.Errorf("%s: %.0f allocations at %d nodes, %.0f at %d: exponent %.2f", asks, a, few, b, few*times, exponent)
		}
		if perNode := b / (few * times); perNode > 130 {
			t.Errorf("%s: %.0f allocations a node", asks, perNode)
		}
		t.Logf("%s: %.0f allocations at %d nodes, %.0f at %d", asks, a, few, b, few*times)
	}
}

// incidentAllocs are the allocations of an incident, what the scheduler's code is asked
// apart: each set of kinds is accepted at its first trial.
func incidentAllocs(t *testing.T, nodes int, asks string) float64 {
	t.Helper()
	st := rcatest.Troubled(nodes, asks)
	w, done, err := view.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	incident := incident.Group(st.Pods, st.Owner)[0]
	c, err := causes.Open(evict.NewLedger(w), incident)
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := w.Snapshot.Explain(t.Context(), c.Pod)
	if err != nil {
		t.Fatal(err)
	}
	return testing.AllocsPerRun(3, func() {
		k, err := causes.Open(evict.NewLedger(w), incident)
		if err != nil {
			t.Fatal(err)
		}
		k.Verdict = verdict
		judged, causes := k.Judge()
		c := New(k, nil, nil, nil)
		best, err := c.bestOf(t.Context(), c.candidates(judged), func(_ context.Context, f *candidate) error {
			f.fix.Proof.Verdict = diagnosis.Schedules
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if fixes := c.ranked(best, causes); len(judged) != nodes || len(fixes) == 0 {
			t.Fatalf("%d nodes, %d fixes", len(judged), len(fixes))
		}
	})
}
