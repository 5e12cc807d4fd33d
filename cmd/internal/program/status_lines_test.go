package program

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/guard"
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
		{Key: "evictions", Text: "0 in the last hour"},
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
		{Key: "evictions", Text: "0 in the last hour"},
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
			{Key: "evictions", Text: "0 of 100 in the last hour, at most 30 a plan"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
