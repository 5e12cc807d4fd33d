package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/world"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// person is who approves in the demo, whose executor is in demoNamespace.
const (
	person        = world.Person
	demoNamespace = "unpend"
)

// carry has the executor of a real cluster carry the plan out, on the Remediation that
// is its journal. With chaos it is killed in the middle, and another goes on.
func (d *demo) carry(incident string, number int, name string) decisions.Carrier {
	return func(ctx context.Context, report func(journal.Progress)) (executor.Outcome, error) {
		out := executor.Outcome{Incident: incident, Started: d.deps.Now()}
		found, err := executor.Find(ctx, d.deps, incident, number, name)
		if err != nil {
			return out, err
		}
		out.Fix = found.Fix
		store := plan.Store{Dynamic: d.deps.Dynamic}
		rem, err := store.Record(ctx, plan.Propose(found, person, d.deps.Now()))
		if err != nil {
			return out, err
		}
		if _, err := store.Decide(ctx, plan.NewApproval(rem, person, nil, v1alpha1.Approve)); err != nil {
			return out, err
		}
		rem, err = d.lookUntilEnded(ctx, store, rem.Name, report)
		if rem != nil {
			out.End(rem, d.deps.Now())
		}
		return out, err
	}
}

func (d *demo) executor() *executor.Executor {
	return executor.New(executor.Options{Deps: d.deps, Namespace: demoNamespace, Self: "demo"})
}

func (d *demo) lookUntilEnded(ctx context.Context, store plan.Store, name string, report func(journal.Progress)) (*v1alpha1.Remediation, error) {
	x, killed := d.executor(), d.chaos == ""
	steps := decisions.NewSteps(report)
	for {
		again, err := x.Look(ctx, name)
		if err != nil {
			return nil, err
		}
		rem, err := store.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		steps.Read(rem)
		if rem.Status.Phase.Ended() {
			return rem, decisions.EndOf(rem)
		}
		if n := len(rem.Status.Journal); !killed && n > 0 && rem.Status.Journal[n-1].Step == "0/manager" {
			killed = true
			d.say(fmt.Sprintf("  the executor is killed at step %s; another reads the journal and goes on", rem.Status.Progress))
			x = d.executor()
		}
		select {
		case <-ctx.Done():
			return rem, ctx.Err()
		case <-time.After(again):
		}
	}
}
