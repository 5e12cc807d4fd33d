package journal

import (
	"context"
	"log/slog"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Program is what a plan takes, step by step, as the plan and its journal stand now.
type Program interface {
	// Steps are all there, in order.
	Steps() []Step
	// WayBack is what takes back what was begun, from where the journal stands.
	WayBack() []Step
	// EveryWayBack has the steps of every way back there can be: no other may stand in a
	// journal.
	EveryWayBack() []Step
	// Left names what was done and is not taken back; empty when all is.
	Left() string
	// Achieved says what a plan that has come to its end has done.
	Achieved() string
	// After says what came of a plan that has ended otherwise than was said before; empty
	// when nothing did.
	After(ctx context.Context) string
	// Pods are those that it evicts: each was read when the plan was proved.
	Pods() []diagnosis.Target
}

// Step is one thing that is done to the cluster. Its id is stable: the journal is read by
// it after a crash.
type Step struct {
	ID     v1alpha1.StepID
	Text   string
	Within time.Duration
	// Try looks at the world and does what is left to do, once: it is asked again until
	// nothing is missing. It must do no harm when all was done before, for it is asked
	// again after a crash too.
	Try func(ctx context.Context, e *Entry) (missing string, err error)
	// Parks says that a failure of this way back leaves the node cordoned, with the
	// reason on it.
	Parks bool
}

// Entry is a step's line of the journal.
type Entry struct {
	*v1alpha1.Entry
	// Again: the step was begun before by a process that has ended since, or the answer to
	// a write of it was lost: it may be done or not.
	Again bool
	// Waited is set by a try that has taken a Poll's time itself, for what it keeps has to be kept
	// all the time: the next follows at once.
	Waited bool

	save func(context.Context) error
}

// Keep notes something that must be on record before the step goes on.
func (e *Entry) Keep(ctx context.Context, note string) error {
	before := e.Note
	if e.Note = note; before == note {
		return nil
	}
	if err := e.save(ctx); err != nil {
		e.Note = before
		return err
	}
	return nil
}

// Progress is one step of a plan as it goes on.
type Progress struct {
	N, Of int
	Text  string
	Done  bool
	// Within which it has to be done; it counts as failed then.
	Within time.Duration
}

// Options of carrying a plan out. Now and Logger are required.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	// DryRun waits for nothing, writes no journal and takes nothing back.
	DryRun bool
	// Poll is how often a wait looks again; 1 s by default.
	Poll time.Duration
	// Renew is how often the journal is written while a step waits, which shows to others
	// that this process is alive; 0: it is not.
	Renew time.Duration
	// Patience bounds the way back once the caller of ToTheEnd has gone away.
	Patience time.Duration
	// Hold says, before every write, why nothing more may be begun (a kill switch);
	// nil: nothing. May be nil.
	Hold func(context.Context) error
	// Leads says who leads, with the generation of the lease, or why we do not. May
	// be nil.
	Leads func(context.Context) (holder string, generation int64, err error)
	// Save writes the journal. Without it the journal is in memory alone.
	Save func(context.Context, *v1alpha1.Remediation) error
	// Observe is told of every step before it is begun, which its error prevents, and of
	// its end; of the plan's without an entry. May be nil.
	Observe Observer
	// Report is told how the plan goes on. May be nil.
	Report func(Progress)
}

// Observer puts a step on record, or the plan as a whole where there is no entry.
type Observer func(ctx context.Context, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error

// Tell puts something on record before it is done: its error prevents that.
func (o Observer) Tell(ctx context.Context, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
	if o == nil {
		return nil
	}
	return o(ctx, rem, e, result)
}

// Remark tells of what has happened: that it cannot be told does not undo it, and
// nothing more is begun then.
func (o Observer) Remark(ctx context.Context, logger *slog.Logger, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) {
	if err := o.Tell(ctx, rem, e, result); err != nil {
		logger.ErrorContext(ctx, "a step is not on record", "plan", rem.Name, "result", result, "error", err)
	}
}

// ResultOf is how the trail calls a plan's end.
func ResultOf(p v1alpha1.Phase) audit.Result {
	switch p {
	case v1alpha1.Succeeded:
		return audit.Done
	case v1alpha1.Parked:
		return audit.Parked
	case v1alpha1.Failed:
		return audit.Undone
	case v1alpha1.Stopped:
		return audit.Stopped
	case v1alpha1.Rejected:
		return audit.Rejected
	}
	return audit.Refused
}
