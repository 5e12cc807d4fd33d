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
	"github.com/unpend/unpend/remediate/pace"
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
	Deadlines pace.Deadlines
	// Poll is how long a wait that keeps something stays with it before it looks again; 0 is not at all.
	Poll time.Duration
	// Locks is the namespace of the lock leases of nodes; no such lock without it: the
	// mark on the node keeps others off.
	Locks string
}

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
