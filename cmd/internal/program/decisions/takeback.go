package decisions

import (
	"context"
	"errors"
	"fmt"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// onRecord is d for a plan that is carried out from here: it and its journal are in the
// API where there are the kinds for it, so that others can take it back should this process
// end. Else Events tell of it, and that is said.
func onRecord(ctx context.Context, d executor.Deps, std console.Stdio) (executor.Deps, error) {
	who, _, err := desk.WhoAmI(ctx, d.Client)
	if executor.Installed(d) {
		d.Requester = who
		return d, err
	}
	if err != nil {
		who = "somebody who may not be asked who they are"
	}
	fmt.Fprintln(std.Err, "unpend is not installed here, so the plan is not on record: Events on the pod that waits and on the nodes tell that it was approved, and how it ended.")
	return executor.Witness(d, who, func(err error) {
		fmt.Fprintf(std.Err, "No Event tells of it: %s\n", terminal.Clean(err.Error()))
	}), nil
}

// watched says whether the terminal has gone away that has begun a plan.
func watched(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation, std console.Stdio) (gone bool, err error) {
	fmt.Fprintf(std.Err, "Plan %.12s is on record as carried out at a terminal of %s: watching whether it goes on ...\n", rem.Name, terminal.Clean(rem.Spec.Requester))
	return executor.Gone(ctx, d, rem)
}

// takeBack takes back what a terminal has left of a plan, and shows its steps.
func takeBack(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation, std console.Stdio) error {
	steps := terminal.NewSteps(std.Err, console.IsTerminal(std.Err), d.Now)
	now, err := executor.TakeBack(ctx, d, rem.Name, func(s journal.Progress) { steps.Update(s.N, s.Of, s.Text, s.Within, s.Done) })
	if cerr := steps.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if now.Status.Phase == v1alpha1.Parked {
		return errors.New("the plan could not be taken back: " + now.Status.Message)
	}
	fmt.Fprintf(std.Err, "Plan %.12s is taken back: %s\n", rem.Name, terminal.Clean(now.Status.Message))
	return nil
}
