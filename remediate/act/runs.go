package act

import (
	"context"

	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/tally"
)

// runs waits until a pod of the workload runs that did not run before, and for a while until
// fewer wait.
func (r *run) runs(ctx context.Context, e *journal.Entry) (string, error) {
	if r.DryRun {
		return "", nil
	}
	name, err := r.tally().Running(ctx)
	r.rem.Status.Pod = name
	switch {
	case err != nil:
		return "", err
	case name != "":
		return r.tally().Calm(ctx, e, r.Now(), r.Deadlines.Calm)
	}
	if missing, err := r.keepRoom(ctx, e); err != nil || missing != "" {
		return missing, err
	}
	w := r.rem.Spec.Workload
	return "no pod of " + w.Kind + "/" + w.Name + " has started to run", nil
}

// tally counts the pods that the plan is about.
func (r *run) tally() *tally.Tally {
	if r.counts == nil {
		r.counts = tally.New(r.Client, r.Owners, r.rem)
	}
	return r.counts
}
