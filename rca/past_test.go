package rca

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
)

// What is quoted is about the root cause, newest first, at most three.
func TestPastOutcomes(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	outcome := func(cause diagnosis.CauseID, kind diagnosis.FixKind, runs bool, hours int) knowledge.Outcome {
		return knowledge.Outcome{Cause: string(cause), Fix: string(kind), Title: "x", Runs: runs, Why: "y", Took: time.Minute, At: at.Add(time.Duration(hours) * time.Hour)}
	}
	past, unread := remember(t.Context(), func(context.Context) ([]knowledge.Outcome, error) {
		return []knowledge.Outcome{outcome(diagnosis.MIGFull, diagnosis.EvictPods, false, 1), outcome(diagnosis.MIGFull, diagnosis.EvictPods, true, 4), outcome(diagnosis.MIGFull, diagnosis.EvictPods, false, 2),
			outcome(diagnosis.MIGFull, diagnosis.ChangeRequest, true, 3), outcome(diagnosis.NodeCordoned, diagnosis.EvictPods, false, 5)}, nil
	})
	if unread != "" {
		t.Error(unread)
	}
	var hours []int
	for _, h := range pastHits(past, []diagnosis.Cause{{ID: diagnosis.MIGFull}}) {
		hours = append(hours, int(h.At.Sub(at).Hours()))
	}
	if diff := cmp.Diff([]int{4, 3, 2}, hours); diff != "" {
		t.Error(diff)
	}
	if _, unread := remember(t.Context(), func(context.Context) ([]knowledge.Outcome, error) { return nil, errors.New("no") }); unread == "" {
		t.Error("nobody says that the past is not known")
	}
}

// Beside a fix stands how its kind turned out against this cause, and nothing of others.
func TestRecordOfAFix(t *testing.T) {
	outcome := func(cause diagnosis.CauseID, kind diagnosis.FixKind, runs bool, took time.Duration) knowledge.Outcome {
		return knowledge.Outcome{Cause: string(cause), Fix: string(kind), Runs: runs, Took: took}
	}
	past := []knowledge.Outcome{
		outcome(diagnosis.MIGFull, diagnosis.EvictPods, true, time.Minute), outcome(diagnosis.MIGFull, diagnosis.EvictPods, true, 9*time.Minute),
		outcome(diagnosis.MIGFull, diagnosis.EvictPods, true, 130*time.Second), outcome(diagnosis.MIGFull, diagnosis.EvictPods, false, time.Hour),
		outcome(diagnosis.MIGFull, diagnosis.Wait, false, time.Hour), outcome(diagnosis.NodeCordoned, diagnosis.UncordonNode, true, time.Second),
	}
	d := diagnosis.Diagnosis{Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull}, {ID: diagnosis.NodeCordoned}},
		Fixes: []diagnosis.Fix{{Kind: diagnosis.EvictPods}, {Kind: diagnosis.Wait}, {Kind: diagnosis.UncordonNode}}}
	setRecords(past, d)
	got := []*diagnosis.Record{d.Fixes[0].Record, d.Fixes[1].Record, d.Fixes[2].Record}
	if diff := cmp.Diff([]*diagnosis.Record{{Worked: 3, Of: 4, Minutes: 3}, {Of: 1}, nil}, got); diff != "" {
		t.Error(diff)
	}
}
