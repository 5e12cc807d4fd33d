package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate"
)

// statusLines are a cluster's standing as a person reads it: what stops plans first.
func statusLines(s remediate.Standing, now time.Time) []terminal.Line {
	var out []terminal.Line
	add := func(alarm bool, key, format string, args ...any) {
		out = append(out, terminal.Line{Alarm: alarm, Key: key, Text: fmt.Sprintf(format, args...)})
	}
	if s.Mode == "approve" {
		add(false, "mode", "approve: %s leads (generation %d)", s.Leader, s.Generation)
	} else {
		add(false, "mode", "observe: no executor leads, approved fixes are applied from the approver's terminal")
	}
	switch {
	case s.Paused:
		add(true, "kill switch", "ON: nothing is begun, what was under way has been taken back")
	default:
		add(false, "kill switch", "off")
	}
	if s.Breaker.Open {
		add(true, "breaker", "OPEN since %s: %s", s.Breaker.Since.Format(time.RFC3339), s.Breaker.Why)
		add(true, "", "close it: %s", s.Breaker.Reset)
	} else {
		add(false, "breaker", "closed; opens at more than %d %% of GPU nodes (at least %d) lost within %s, or %d failures within %s",
			s.Limits.Breaker.Percent, s.Limits.Breaker.AtLeast, s.Limits.Breaker.Window, s.Limits.Breaker.Failures, s.Limits.Breaker.FailureWindow)
	}
	f := s.Figures
	if f.FrozenUntil.After(now) {
		add(true, "freeze", "until %s", f.FrozenUntil.Format(time.RFC3339))
	} else {
		add(false, "freeze", "%d windows, none open", len(s.Limits.Freeze))
	}
	add(false, "nodes", "%d of %d worked on%s", len(f.InFlight), s.Limits.NodesInFlight, listed(f.InFlight))
	add(false, "pool", "%d of %d GPU nodes out of use, limit %d %%%s", len(f.OutOfUse), f.GPUNodes, s.Limits.PoolUnavailablePercent, listed(f.OutOfUse))
	add(false, "evictions", "%d of %d in the last hour, at most %d a plan", f.EvictedLastHour, s.Limits.EvictionsPerHour, s.Limits.EvictionsPerPlan)
	add(false, "patience", "a plan lives %s, a node rests %s, nothing is undone within %s", s.Limits.PlanTTL, s.Limits.CoolDown, s.Limits.OppositeWithin)
	for _, p := range f.Parked {
		add(true, "PARKED", "%s by plan %.12s: %s", p.Node, p.Plan, p.Why)
	}
	for _, p := range f.Quarantined {
		add(true, "QUARANTINED", "%s by plan %.12s: %s", p.Node, p.Plan, p.Why)
	}
	for _, phase := range slices.Sorted(maps.Keys(s.Plans)) {
		add(false, "plans", "%d %s", s.Plans[phase], strings.ToLower(phase))
	}
	for _, u := range s.Unread {
		add(true, "unread", "%s", u)
	}
	return out
}

func listed(names []string) string {
	if len(names) == 0 {
		return ""
	}
	if len(names) > 3 {
		return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:3], ", "), len(names)-3)
	}
	return " (" + strings.Join(names, ", ") + ")"
}
