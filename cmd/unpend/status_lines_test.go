package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate"
	"github.com/unpend/unpend/remediate/guard"
)

// What may not be read is told as unknown, and never as off, closed or none.
func TestStatusOfWhatIsUnread(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	nothing := statusLines(remediate.Standing{Mode: "unknown", Limits: guard.Defaults(), Unread: []string{"leases is forbidden"}}, now)
	want := []terminal.Line{
		{Alarm: true, Key: "mode", Text: "unknown: you may not read whether an executor leads"},
		{Alarm: true, Key: "guards", Text: "unknown: you may not read the kill switch, the breaker and the limits"},
		{Alarm: true, Key: "figures", Text: "unknown: you may not read nodes, plans and the pods that wait"},
		{Alarm: true, Key: "unread", Text: "leases is forbidden"},
	}
	if diff := cmp.Diff(want, nothing); diff != "" {
		t.Error(diff)
	}
	figures := statusLines(remediate.Standing{Mode: "observe", Limits: guard.Defaults(), FiguresRead: true, Figures: guard.Figures{GPUNodes: 3}}, now)
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
