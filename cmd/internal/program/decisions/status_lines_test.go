package decisions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// What may not be read is told as unknown, and never as off, closed or none.
func TestStatusOfWhatIsUnread(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	nothing := statusLines(executor.Standing{Mode: "unknown", Limits: guard.Defaults(), Unread: []string{"leases is forbidden"}}, now)
	want := []terminal.Line{
		{Alarm: true, Key: "mode", Text: "unknown: you may not read whether an executor leads"},
		{Alarm: true, Key: "guards", Text: "unknown: you may not read the kill switch, the breaker and the limits"},
		{Alarm: true, Key: "figures", Text: "unknown: you may not read nodes, plans and the pods that wait"},
		{Alarm: true, Key: "unread", Text: "leases is forbidden"},
	}
	if diff := cmp.Diff(want, nothing); diff != "" {
		t.Error(diff)
	}
	figures := statusLines(executor.Standing{Mode: "observe", Limits: guard.Defaults(), FiguresRead: true, Figures: guard.Figures{GPUNodes: 3}}, now)
	want = []terminal.Line{
		{Key: "mode", Text: "observe: no executor leads, approved fixes are applied from the approver's terminal"},
		{Alarm: true, Key: "guards", Text: "unknown: you may not read the kill switch, the breaker and the limits"},
		{Key: "nodes", Text: "0 worked on"},
		{Key: "pool", Text: "0 of 3 GPU nodes out of use"},
		{Key: "stops", Text: "0 pods in the last hour"},
	}
	if diff := cmp.Diff(want, figures); diff != "" {
		t.Error(diff)
	}
}

// Limits that say nothing clear are told with the field that is wrong; what else is known
// is told beside them.
func TestStatusOfUnclearLimits(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	got := statusLines(executor.Standing{Mode: "approve", Leader: "unpend-0", Paused: true, Limits: guard.Defaults(), GuardsUnclear: "coolDown is banana", FiguresRead: true, Figures: guard.Figures{GPUNodes: 3}}, now)
	want := []terminal.Line{
		{Key: "mode", Text: "approve: unpend-0 leads (generation 0)"},
		{Alarm: true, Key: "guards", Text: "UNCLEAR: nothing is begun until that is mended: coolDown is banana"},
		{Alarm: true, Key: "kill switch", Text: "ON: nothing is begun, what was under way has been taken back"},
		{Key: "breaker", Text: "closed"},
		{Key: "nodes", Text: "0 worked on"},
		{Key: "pool", Text: "0 of 3 GPU nodes out of use"},
		{Key: "stops", Text: "0 pods in the last hour"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The defaults in plain words.
func TestStatusOfDefaults(t *testing.T) {
	limits := guard.Defaults()
	for n, freeze := range []string{"no windows are set", "1 window, none open", "2 windows, none open"} {
		limits.Freeze = make([]guard.Freeze, n)
		got := statusLines(executor.Standing{Mode: "observe", Limits: limits, GuardsRead: true, FiguresRead: true}, time.Now())
		want := []terminal.Line{
			{Key: "mode", Text: "observe: no executor leads, approved fixes are applied from the approver's terminal"},
			{Key: "kill switch", Text: "off"},
			{Key: "breaker", Text: "closed; opens at more than 20 % of GPU nodes (at least 3) lost within 10m, or 3 failures within 1h"},
			{Key: "patience", Text: "a plan lives 15m, a node rests 1h, nothing is undone within 24h"},
			{Key: "freeze", Text: freeze},
			{Key: "nodes", Text: "0 of 1 worked on"},
			{Key: "pool", Text: "0 of 0 GPU nodes out of use, limit 10 %"},
			{Key: "stops", Text: "0 of 100 pods in the last hour, at most 30 a plan"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// What was left is told with the way out, and of what is worked on how it is kept closed.
func TestStatusOfWhatWasLeft(t *testing.T) {
	is := executor.Standing{Mode: "approve", Leader: "unpend-0", Paused: true, GuardsGone: true, Limits: guard.Defaults(), GuardsRead: true, FiguresRead: true,
		Figures: guard.Figures{GPUNodes: 3, InFlight: []string{"gpu-1"}, Parked: []guard.Parked{{Node: "gpu-2", Plan: "abc", Why: "MIG manager says failed"}}},
		Orphans: []executor.Orphan{{Node: "gpu-3", Plan: "def", Why: "its plan is not under way any more", Release: "unpend release gpu-3"},
			{Plan: "0123456789abcdef", Why: "a terminal has begun it", Release: "unpend release 0123456789ab"}},
		Newer: []executor.Newer{{Plan: "0123456789abcdef", Phase: v1alpha1.Running, Schema: 2, Way: "run it"}, {Plan: "fedcba9876543210", Schema: 3, Way: "run it, too"}, {Node: "gpu-4", Schema: 2, Way: "release it with that"}}}
	want := []terminal.Line{
		{Alarm: true, Key: "kill switch", Text: "ON: its ConfigMap, unpend-guards, was deleted; 'helm upgrade' makes it again, with the limits of its values"},
		{Key: "nodes", Text: "1 of 1 worked on (gpu-1)"},
		{Text: "keep gpu-1 closed afterwards: kubectl annotate node gpu-1 unpend.dev/keep-cordoned=true"},
		{Alarm: true, Key: "PARKED", Text: "gpu-2 by plan abc: MIG manager says failed"},
		{Alarm: true, Text: "once its GPUs are well: unpend release gpu-2"},
		{Alarm: true, Key: "ORPHANED", Text: "gpu-3: its plan is not under way any more"},
		{Alarm: true, Text: "give it back: unpend release gpu-3"},
		{Alarm: true, Key: "ORPHANED", Text: "plan 0123456789ab: a terminal has begun it"},
		{Alarm: true, Text: "give it back: unpend release 0123456789ab"},
		{Alarm: true, Key: "NEWER", Text: "plan 0123456789ab (Running) was written by a newer unpend (schema 2) and is left alone"},
		{Alarm: true, Text: "run it"},
		{Alarm: true, Key: "NEWER", Text: "plan fedcba987654 (Pending) was written by a newer unpend (schema 3) and is left alone"},
		{Alarm: true, Text: "run it, too"},
		{Alarm: true, Key: "NEWER", Text: "node gpu-4 was written by a newer unpend (schema 2) and is left alone"},
		{Alarm: true, Text: "release it with that"},
	}
	var got []terminal.Line
	for _, l := range statusLines(is, time.Now()) {
		if l.Key == "" || l.Key == "kill switch" || l.Key == "nodes" || l.Key == "PARKED" || l.Key == "ORPHANED" || l.Key == "NEWER" {
			got = append(got, l)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
