package desks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/desk"
)

// Who asks in Slack why a pod waits reads what keeps it, and beside each of the best fixes what
// it stops and how its kind turned out here before.
func TestWhyInSlack(t *testing.T) {
	fix := func(id int, record *diagnosis.Record, stops ...diagnosis.PodName) diagnosis.Fix {
		return diagnosis.Fix{ID: id, Title: "do this", Risk: diagnosis.LowRisk, Cost: diagnosis.Cost{Evictions: stops}, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Record: record}
	}
	got := whyLines(desk.Finding{Diagnosis: diagnosis.Diagnosis{Headline: "ml/training waits",
		Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Certainty: diagnosis.Proven, Says: "every GPU is full", Nodes: []string{"a", "b"}}, {ID: diagnosis.NodeCordoned, Certainty: diagnosis.Likely, Says: "cordoned", Nodes: []string{"c"}}},
		Fixes:  []diagnosis.Fix{fix(1, &diagnosis.Record{Worked: 4, Of: 5, Minutes: 3}, diagnosis.PodName{Name: "etl"}), fix(2, nil), fix(3, &diagnosis.Record{Of: 1}), fix(4, nil)}}})
	want := []string{"ml/training waits", "", "• 2 nodes: every GPU is full (MIGFull)", "• 1 nodes: cordoned (NodeCordoned, likely)",
		"1  do this: stops 1 pods, risk low, schedules, worked here 4 times of 5, in about 3 min", "2  do this: stops 0 pods, risk low, schedules", "3  do this: stops 0 pods, risk low, schedules, did not help here the one time it was tried"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
