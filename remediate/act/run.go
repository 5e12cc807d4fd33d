package act

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/tally"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/owners"
)

// Deps are what verbs act with. All but DryRun and Locks are required.
type Deps struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Owners are the kinds of owners that are read beside Kubernetes' own: those that the plan
	// was found with.
	Owners owners.Reader
	// As writes pods and workloads: as the approver, where that is another than Client.
	As     kubernetes.Interface
	Now    func() time.Time
	Logger *slog.Logger
	// DryRun sends every write as a server-side dry run and waits for nothing.
	DryRun    bool
	Deadlines Deadlines
	// Locks is the namespace of the lock leases of nodes; no such lock without it: the
	// mark on the node keeps others off.
	Locks string
}

// Deadlines bound the waits of one plan.
type Deadlines struct {
	Evict   time.Duration // a budget that says no; 5 min
	Leave   time.Duration // victims that terminate; 5 min
	Manager time.Duration // MIG manager's work; 10 min
	Settle  time.Duration // the scheduler hears of a cordon; 1 s
	Notice  time.Duration // MIG manager looks at a label that changes nothing; 15 s
	Wedge   time.Duration // pending with paused operands; 6 min: its own wait is 5 per component
	Run     time.Duration // the pod comes to run; 5 min
	Calm    time.Duration // once it runs, fewer come to wait than before; 10 s
}

// WithDefaults fills in what is not set.
func (d Deadlines) WithDefaults() Deadlines {
	set := func(t *time.Duration, otherwise time.Duration) {
		if *t == 0 {
			*t = otherwise
		}
	}
	set(&d.Evict, 5*time.Minute)
	set(&d.Leave, 5*time.Minute)
	set(&d.Manager, 10*time.Minute)
	set(&d.Wedge, 6*time.Minute)
	set(&d.Settle, time.Second)
	set(&d.Notice, 15*time.Second)
	set(&d.Run, 5*time.Minute)
	set(&d.Calm, 10*time.Second)
	return d
}

// WayBack is how long taking a plan back may last.
func (d Deadlines) WayBack() time.Duration { return d.Manager + 5*contention }

// contention is how long a write is tried again because others write to the same
// object: the kubelet, controllers, MIG manager.
const contention = time.Minute

// run is one plan as its verbs see it.
type run struct {
	Deps
	rem *v1alpha1.Remediation
	// actions of the plan, in the order they are taken.
	actions []diagnosis.Action
	// step that is tried now.
	step v1alpha1.StepID
	// asking is the uid of the object whose write was asked for and not answered;
	// unanswered is the step that made it.
	asking     string
	unanswered v1alpha1.StepID
	// counts is the plan's tally; nil until it is asked.
	counts *tally.Tally
}

// follow tells every step when it made a write before whose answer was lost.
func (r *run) follow(steps []journal.Step) []journal.Step {
	for i, s := range steps {
		steps[i].Try = func(ctx context.Context, e *journal.Entry) (string, error) {
			r.step = s.ID
			e.Again = e.Again || r.unanswered == s.ID
			return s.Try(ctx, e)
		}
	}
	return steps
}

// ask makes a write, and remembers it where nothing says what came of it: an API server
// that gives up may have done it, but for one that has too much to do.
func (r *run) ask(uid string, write func() error) error {
	r.asking = uid
	err := write()
	if journal.Transient(err) && !apierrors.IsTooManyRequests(err) {
		r.unanswered = r.step
		return err
	}
	r.asking = ""
	return err
}

func (r *run) dryRun() []string {
	if r.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// entry is a step's line of the journal; nil when there is none.
func (r *run) entry(id v1alpha1.StepID) *v1alpha1.Entry {
	for i := range r.rem.Status.Journal {
		if e := &r.rem.Status.Journal[i]; e.Step == id {
			return e
		}
	}
	return nil
}
