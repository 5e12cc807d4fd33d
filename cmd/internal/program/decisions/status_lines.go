package decisions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// standing is a cluster's standing as a person reads it, line by line. What could not be
// read is told as unknown: an alarm too, for it may be anything.
type standing struct {
	executor.Standing
	lines []terminal.Line
}

func (s *standing) add(alarm bool, key, format string, args ...any) {
	s.lines = append(s.lines, terminal.Line{Alarm: alarm, Key: key, Text: fmt.Sprintf(format, args...)})
}

// statusLines tells what stops plans first.
func statusLines(is executor.Standing, now time.Time) []terminal.Line {
	s := standing{Standing: is}
	switch s.Mode {
	case "approve":
		s.add(false, "mode", "approve: %s leads (generation %d)", s.Leader, s.Generation)
	case "unknown":
		s.add(true, "mode", "unknown: you may not read whether an executor leads")
	default:
		s.add(false, "mode", "observe: no executor leads, approved fixes are applied from the approver's terminal")
	}
	switch {
	case s.GuardsUnclear != "":
		s.add(true, "guards", "UNCLEAR: nothing is begun until that is mended: %s", s.GuardsUnclear)
		s.stops()
	case s.GuardsRead:
		s.guards()
	default:
		s.add(true, "guards", "unknown: you may not read the kill switch, the breaker and the limits")
	}
	if s.FiguresRead {
		s.figures(now)
	} else {
		s.add(true, "figures", "unknown: you may not read nodes, plans and the pods that wait")
	}
	for _, u := range s.Unread {
		s.add(true, "unread", "%s", u)
	}
	return s.lines
}

// stops tells what stops all plans; the breaker as far as its limits are known.
func (s *standing) stops() {
	switch {
	case s.GuardsGone:
		s.add(true, "kill switch", "ON: its ConfigMap, unpend-guards, was deleted; 'helm upgrade' makes it again, with the limits of its values")
	case s.Paused:
		s.add(true, "kill switch", "ON: nothing is begun, what was under way has been taken back")
	default:
		s.add(false, "kill switch", "off")
	}
	switch b := s.Limits.Breaker; {
	case s.Breaker.Open:
		s.add(true, "breaker", "OPEN since %s: %s", s.Breaker.Since.Format(time.RFC3339), s.Breaker.Why)
		s.add(true, "", "close it: %s", s.Breaker.Reset)
	case s.GuardsRead:
		s.add(false, "breaker", "closed; opens at more than %d %% of GPU nodes (at least %d) lost within %s, or %s within %s",
			b.Percent, b.AtLeast, console.Lasting(b.Window), counted(b.Failures, "failure"), console.Lasting(b.FailureWindow))
	default:
		s.add(false, "breaker", "closed")
	}
}

func (s *standing) guards() {
	s.stops()
	s.add(false, "patience", "a plan lives %s, a node rests %s, nothing is undone within %s", console.Lasting(s.Limits.PlanTTL), console.Lasting(s.Limits.CoolDown), console.Lasting(s.Limits.OppositeWithin))
}

// counted is a number of things.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// figures tells them beside the limits, where those could be read.
func (s *standing) figures(now time.Time) {
	f, limit := s.Figures, func(format string, args ...any) string {
		if !s.GuardsRead {
			return ""
		}
		return fmt.Sprintf(format, args...)
	}
	if f.FrozenUntil.After(now) {
		s.add(true, "freeze", "until %s", f.FrozenUntil.Format(time.RFC3339))
	} else if n := len(s.Limits.Freeze); s.GuardsRead && n == 0 {
		s.add(false, "freeze", "no windows are set")
	} else if s.GuardsRead {
		s.add(false, "freeze", "%s, none open", counted(n, "window"))
	}
	s.add(false, "nodes", "%d%s worked on%s", len(f.InFlight), limit(" of %d", s.Limits.NodesInFlight), listed(f.InFlight))
	for _, name := range f.InFlight {
		s.add(false, "", "keep %s closed afterwards: kubectl annotate node %s %s=true", name, name, diagnosis.KeepCordoned)
	}
	s.add(false, "pool", "%d of %d GPU nodes out of use%s%s", len(f.OutOfUse), f.GPUNodes, limit(", limit %d %%", s.Limits.PoolUnavailablePercent), listed(f.OutOfUse))
	s.add(false, "stops", "%d%s pods in the last hour%s", f.StoppedLastHour, limit(" of %d", s.Limits.EvictionsPerHour), limit(", at most %d a plan", s.Limits.EvictionsPerPlan))
	for _, p := range f.Parked {
		s.add(true, "PARKED", "%s by plan %.12s: %s", p.Node, p.Plan, p.Why)
		s.add(true, "", "once its GPUs are well: unpend release %s", p.Node)
	}
	for _, o := range s.Orphans {
		what := o.Node
		if what == "" {
			what = fmt.Sprintf("plan %.12s", o.Plan)
		}
		s.add(true, "ORPHANED", "%s: %s", what, o.Why)
		s.add(true, "", "give it back: %s", o.Release)
	}
	for _, n := range s.Newer {
		what := "node " + n.Node
		if n.Node == "" {
			what = fmt.Sprintf("plan %.12s (%s)", n.Plan, cmp.Or(n.Phase, v1alpha1.Pending))
		}
		s.add(true, "NEWER", "%s was written by a newer unpend (schema %d) and is left alone", what, n.Schema)
		s.add(true, "", "%s", n.Way)
	}
	for _, p := range f.Quarantined {
		s.add(true, "QUARANTINED", "%s by plan %.12s: %s", p.Node, p.Plan, p.Why)
	}
	for _, phase := range slices.Sorted(maps.Keys(s.Plans)) {
		s.add(false, "plans", "%d %s", s.Plans[phase], strings.ToLower(phase))
	}
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
