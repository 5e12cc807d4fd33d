package act

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// verbs says of each verb how an action of it is carried out.
var verbs = map[string]func(action) verb{
	diagnosis.VerbEvict:    newEvict,
	diagnosis.VerbCordon:   newCordon,
	diagnosis.VerbUncordon: newUncordon,
	diagnosis.VerbPatch:    newPatch,
	diagnosis.VerbRecreate: newRecreate,
	diagnosis.VerbRelayout: newRelayout,
}

// verb is one way of changing the cluster, for one action of a plan.
type verb interface {
	// steps that it takes, in order.
	steps() []journal.Step
	// wayBack takes back what was begun of it: every step there can be, each of which finds
	// by itself whether there is something to take back.
	wayBack() []journal.Step
	// parked are the steps that are taken in place of the way back once one of that has
	// failed which parks the node.
	parked() []journal.Step
	// left names what was done of it and is not taken back; empty when nothing is.
	left() string
	// achieved says what it has done, where no pod is waited for; empty when that says
	// nothing.
	achieved() string
	// rights that the approver has to have: those that its writes take, so that a plan
	// does not fail in the middle for want of one.
	rights() []right
	// check says what has changed since it was proved, besides the objects that it
	// writes to and the facts that it relies on; waiting are the pods that wait.
	check(st *cluster.State, waiting []string) error
}

// action is one of a plan's: what a verb begins with. By default it takes nothing back, and
// what was done of it stays.
type action struct {
	*run
	diagnosis.Action
	n int // of the plan's actions
}

// id names a step of the action.
func (a action) id(step string) v1alpha1.StepID { return v1alpha1.StepOf(a.n, step) }

// backID names a step of its way back.
func (a action) backID(step string) v1alpha1.StepID { return v1alpha1.BackOf(a.n, step) }

// only names the step of an action that is one step.
func (a action) only() v1alpha1.StepID {
	return v1alpha1.StepID(strings.Trim(string(a.id(fmt.Sprintf("%s/%s/%s", a.Verb, a.Target.Namespace, a.Target.Name))), "/"))
}

// oneStep is the whole of an action that is one step.
func (a action) oneStep(text string, within time.Duration, try func(context.Context, *journal.Entry) (string, error)) []journal.Step {
	return []journal.Step{{ID: a.only(), Text: text, Within: within, Try: try}}
}

func (a action) wayBack() []journal.Step { return nil }

func (a action) parked() []journal.Step { return nil }

func (a action) left() string {
	if e := a.entry(a.only()); e == nil || e.Ended == nil || e.Error != "" {
		return ""
	}
	return fmt.Sprintf("%s %s/%s", a.Verb, strings.ToLower(a.Target.Kind), a.Target.Name)
}

func (a action) achieved() string { return "" }

func (a action) check(*cluster.State, []string) error { return nil }

// unknown is an action whose verb this version does not know.
type unknown struct{ action }

func (v unknown) steps() []journal.Step {
	return v.oneStep(fmt.Sprintf("%s %s/%s", v.Verb, strings.ToLower(v.Target.Kind), v.Target.Name), pace.Contention,
		func(context.Context, *journal.Entry) (string, error) {
			return "", fmt.Errorf("%w: action %q is not known", plan.ErrRefused, v.Verb)
		})
}

func (v unknown) rights() []right { return []right{v.repartition()} }

// verbsOf are those of a plan's actions.
func (r *run) verbsOf(actions []diagnosis.Action) []verb {
	out := make([]verb, 0, len(actions))
	for i, a := range actions {
		make, known := verbs[a.Verb]
		if !known || (a.Verb == diagnosis.VerbRelayout) != (a.Relayout != nil) {
			out = append(out, unknown{action{r, a, i}})
			continue
		}
		out = append(out, make(action{r, a, i}))
	}
	return out
}
