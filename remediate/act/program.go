package act

import (
	"context"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Program is what a plan takes, a verb for each of its actions.
type Program struct {
	*run
	verbs []verb
}

var _ journal.Program = (*Program)(nil)

// New makes the program of a plan. It follows the plan's status as that goes on.
func New(d Deps, rem *v1alpha1.Remediation) *Program {
	r := &run{Deps: d, rem: rem, actions: plan.InOrder(rem.Spec.Actions)}
	return &Program{r, r.verbsOf(r.actions)}
}

// Steps are all that carrying the plan out takes.
func (p *Program) Steps() []journal.Step {
	var out []journal.Step
	for _, v := range p.verbs {
		out = append(out, v.steps()...)
	}
	if !plan.SchedulesNobody(p.rem) {
		out = append(out, journal.Step{ID: "run", Text: "wait until the pod runs", Within: p.Deadlines.Run, Try: p.runs})
	}
	return p.follow(out)
}

// WayBack is what takes back what was begun: nothing of what had not begun. Once a node is
// to be parked, nothing else is taken back.
func (p *Program) WayBack() []journal.Step {
	if i, ok := p.rem.Status.Parking.Action(); ok && i < len(p.verbs) {
		return p.follow(p.verbs[i].parked())
	}
	begun := map[int]bool{}
	for _, e := range p.rem.Status.Journal {
		if i, ok := e.Step.Action(); ok && !e.Step.TakesBack() {
			begun[i] = true
		}
	}
	out := []journal.Step{p.nominationBack()}
	for i, v := range slices.Backward(p.verbs) {
		if begun[i] {
			out = append(out, v.wayBack()...)
		}
	}
	return p.follow(out)
}

// EveryWayBack are the steps of every way back there can be.
func (p *Program) EveryWayBack() []journal.Step {
	out := []journal.Step{p.nominationBack()}
	for _, v := range p.verbs {
		out = append(append(out, v.wayBack()...), v.parked()...)
	}
	return out
}

func (p *Program) nominationBack() journal.Step {
	return journal.Step{ID: "undo/nomination", Text: "take the nomination back", Within: pace.Contention, Try: func(ctx context.Context, _ *journal.Entry) (string, error) {
		return p.nominateNobody(ctx)
	}}
}

// Left names what was done and is not taken back: a patched template is not patched
// back, for that would start its pods once more.
func (p *Program) Left() string {
	var out []string
	for _, v := range p.verbs {
		if left := v.left(); left != "" {
			out = append(out, left)
		}
	}
	return strings.Join(out, ", ")
}

// Achieved says what a plan that has come to its end has done. Nobody files a ticket here,
// and it does not sound so.
func (p *Program) Achieved() string {
	if !plan.SchedulesNobody(p.rem) {
		return p.rem.Status.Pod + " runs"
	}
	var says []string
	for _, v := range p.verbs {
		if done := v.achieved(); done != "" {
			says = append(says, done)
		}
	}
	return strings.Join(append(says, "the pod still waits"), "; ")
}

// Pods are those that the plan evicts.
func (p *Program) Pods() []diagnosis.Target {
	var out []diagnosis.Target
	for _, a := range p.actions {
		out = append(out, a.Evicts()...)
	}
	return out
}

// After holds what came of the plan to what was said of it, and says what was not.
func (p *Program) After(ctx context.Context) string { return p.tally().After(ctx) }
