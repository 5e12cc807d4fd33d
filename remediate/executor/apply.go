package executor

import (
	"context"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Outcome is what became of an approved fix.
type Outcome struct {
	Incident string        `json:"incident"`
	Fix      diagnosis.Fix `json:"fix"`
	Pod      string        `json:"pod,omitempty"` // namespace/name that runs now
	Says     string        `json:"says"`          // what was achieved, one sentence
	Evicted  int           `json:"evicted"`
	// Restarted pods stopped in another way: their workload was made again or rolled.
	Restarted int       `json:"restarted"`
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended"`
}

// Apply proves the fix again on fresh state and carries it out. Its journal is in memory,
// or in the API where d.Requester says who writes it. Before each write the object, and
// what the plan relies on, is read once more; the write carries the uid and the
// resourceVersion of that reading. When the context ends, what was begun is taken back.
func Apply(ctx context.Context, d Deps, id string, number int, hash string, report func(journal.Progress)) (Outcome, error) {
	d = d.withDefaults()
	out := Outcome{Incident: id, Started: d.Now()}
	found, err := Find(ctx, d, id, number, hash)
	if err != nil {
		return out, err
	}
	out.Fix = found.Fix
	rem := plan.Propose(found, d.Requester, d.Now())
	if !d.DryRun {
		if err := d.lacks(ctx, rem); err != nil {
			return out, err
		}
	}
	if d, rem, err = d.recorded(ctx, rem); err != nil {
		return out, err
	}
	act.Begin(rem, found.State, d.Now())
	opts := d.journaling()
	opts.Report = report
	m, err := journal.New(opts, rem, act.New(d.acting(), rem))
	if err != nil {
		return out, err
	}
	err = m.ToTheEnd(ctx)
	out.End(rem, d.Now())
	return out, err
}

// End is what became of a plan that has ended, or is no longer watched.
func (o *Outcome) End(rem *v1alpha1.Remediation, now time.Time) {
	st := &rem.Status
	o.Pod, o.Says, o.Evicted, o.Restarted, o.Ended = st.Pod, st.Message, st.Evicted, len(st.Restarted), now
}
