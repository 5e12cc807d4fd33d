package executor

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/owners"
)

// Deps are what a plan is proved and carried out with.
type Deps struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Owners are the kinds of owners that are read beside Kubernetes' own; none by default.
	Owners owners.Reader
	// As writes pods and workloads: as the approver, where that is another. Client
	// without it.
	As     kubernetes.Interface
	Now    func() time.Time
	Logger *slog.Logger // none by default
	// Measure tells which holders of GPUs are idle, when a plan is proved again; nil:
	// none is taken for idle.
	Measure diagnosis.Measure
	// Guard tells which fixes guard-rails would refuse before a plan is recorded, in the
	// order in which they were shown then; nil: none. A plan that is carried out is judged
	// by them itself.
	Guard func(context.Context, *cluster.State) (diagnosis.Guard, error)
	// Shown are the actions of the plan as a person was shown it, to name what has changed
	// since where it is no longer the plan. May be nil.
	Shown []diagnosis.Action
	// DryRun sends every write as a server-side dry run and waits for nothing.
	DryRun bool
	// Poll is how often a wait looks again; pace.Poll without it.
	Poll time.Duration
	// Deadlines of the waits; the zero value takes the defaults.
	Deadlines pace.Deadlines
	// Locks is the namespace of the lock leases of nodes; no such lock without it:
	// the mark on the node keeps others off.
	Locks string
	// Hold says, before every write, why nothing more may be begun (a kill switch);
	// nil: nothing. May be nil.
	Hold func(context.Context) error
	// Leads says who leads, with the generation of the lease, or why we do not. May
	// be nil.
	Leads func(context.Context) (holder string, generation int64, err error)
	// Save writes the journal. Without it the journal is in memory alone.
	Save func(context.Context, *v1alpha1.Remediation) error
	// Requester carries a plan out at a terminal, as this user: the plan and its journal
	// are in the API, so that others can take it back. Without it they are in memory alone.
	Requester string
	// Observe is told of every step before it is begun, which its error prevents, and of
	// its end; of the plan's without an entry. May be nil.
	Observe journal.Observer
	// renew shows that this process carries a plan out, where that is not a leader.
	renew time.Duration
}

func (d Deps) withDefaults() Deps {
	d.Deadlines = d.Deadlines.WithDefaults()
	if d.Poll == 0 {
		d.Poll = pace.Poll
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.As == nil {
		d.As = d.Client
	}
	return d
}

// acting is what the verbs act with.
func (d Deps) acting() act.Deps {
	return act.Deps{Client: d.Client, Dynamic: d.Dynamic, Owners: d.Owners, As: d.As, Now: d.Now, Logger: d.Logger, DryRun: d.DryRun, Deadlines: d.Deadlines, Poll: d.Poll, Locks: d.Locks}
}

// journaling is what the journal goes by.
func (d Deps) journaling() journal.Options {
	return journal.Options{Now: d.Now, Logger: d.Logger, DryRun: d.DryRun, Poll: d.Poll, Renew: d.renew, Patience: d.Deadlines.WayBack(),
		Hold: d.Hold, Leads: d.Leads, Save: d.Save, Observe: d.Observe}
}
