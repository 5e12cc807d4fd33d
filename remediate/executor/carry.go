package executor

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// How a terminal shows that it still carries a plan out: the plan's resourceVersion moves.
// No clock is asked, for those of two machines differ.
const (
	renewEvery = 2 * time.Second
	// watchCarrier is how long a person who asks for it watches a plan that does not move.
	watchCarrier = 3 * renewEvery
	// carrierGone is how long the executor waits: nobody has asked it.
	carrierGone = 30 * time.Second
)

// recorded records a plan that is carried out here, where it is to be on record.
func (d Deps) recorded(ctx context.Context, rem *v1alpha1.Remediation) (Deps, *v1alpha1.Remediation, error) {
	if d.Requester == "" || d.DryRun {
		rem.UID = uuid.NewUUID()
		return d, rem, nil
	}
	rem.Spec.Carrier = v1alpha1.Terminal
	made, err := plan.Store{Dynamic: d.Dynamic}.Record(ctx, rem)
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: %w", plan.ErrRefused, err)
	}
	if err != nil {
		return d, nil, err
	}
	switch phase := made.Status.Phase; {
	case phase.Ended():
		return d, nil, fmt.Errorf("%w: this plan has been carried out already: %s", plan.ErrRefused, made.Status.Message)
	case phase.Begun():
		return d, nil, fmt.Errorf("%w: plan %.12s is under way already, by the word of %s", plan.ErrRefused, made.Name, made.Spec.Requester)
	}
	if err := (plan.Store{Dynamic: d.Dynamic}).Witness(ctx, plan.NewApproval(made, d.Requester, nil, v1alpha1.Approve)); err != nil {
		return d, nil, err
	}
	made.Status.ApprovedBy = []string{d.Requester}
	return d.carries(made), made, nil
}

// carries is d for a process that carries a recorded plan on: the journal is in the API, and
// a no of somebody stops it.
func (d Deps) carries(rem *v1alpha1.Remediation) Deps {
	store, hold := plan.Store{Dynamic: d.Dynamic}, d.Hold
	d.renew = renewEvery
	d.Save = func(ctx context.Context, rem *v1alpha1.Remediation) error {
		err := store.Save(ctx, rem)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w: %w; see 'unpend remediations %.12s'", journal.ErrTakenOver, err, rem.Name)
		}
		return err
	}
	d.Hold = func(ctx context.Context) error {
		if hold != nil {
			if err := hold(ctx); err != nil {
				return err
			}
		}
		said, err := store.Approvals(ctx, rem.Name)
		if err != nil {
			return err
		}
		if no := rejection(rem, said); no != "" {
			return fmt.Errorf("%w: %s", plan.ErrHalted, no)
		}
		return nil
	}
	return d
}

// Gone says whether nobody carries a plan on that a terminal has begun: its journal does
// not move. It takes watchCarrier to tell that it is gone.
func Gone(ctx context.Context, d Deps, rem *v1alpha1.Remediation) (bool, error) {
	store, began := plan.Store{Dynamic: d.Dynamic}, time.Now() // monotonic
	for {
		now, err := store.Get(ctx, rem.Name)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("watch plan %.12s: %w", rem.Name, err)
		case now.UID != rem.UID || !now.Status.Phase.Begun():
			return true, nil
		case now.ResourceVersion != rem.ResourceVersion:
			return false, nil
		case time.Since(began) > watchCarrier:
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(renewEvery / 6):
		}
	}
}

// TakeBack takes back, as the caller, what a terminal has begun that is gone, and gives
// the plan back as it is then. The caller has seen that it is Gone.
func TakeBack(ctx context.Context, d Deps, name string, report func(journal.Progress)) (*v1alpha1.Remediation, error) {
	d = d.withDefaults()
	rem, err := plan.Store{Dynamic: d.Dynamic}.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read plan %.12s: %w", name, err)
	}
	if rem.Status.Phase.Ended() {
		return rem, nil
	}
	d = d.carries(rem)
	if !journal.Abandon(rem, lostTerminal(rem), d.Now()) {
		return rem, d.end(ctx, rem, v1alpha1.Stopped, lostTerminal(rem)+"; it had written nothing")
	}
	opts := d.journaling()
	opts.Report = report
	m, err := journal.New(opts, rem, act.New(d.acting(), rem))
	if err != nil {
		return rem, err
	}
	if err := d.Save(ctx, rem); err != nil {
		return rem, err
	}
	if err := m.ToTheEnd(ctx); err != nil && !rem.Status.Phase.Ended() {
		return rem, err
	}
	return rem, nil
}

func lostTerminal(rem *v1alpha1.Remediation) string {
	return fmt.Sprintf("the terminal of %s that carried it out has ended", rem.Spec.Requester)
}

// end ends a plan without a step more.
func (d Deps) end(ctx context.Context, rem *v1alpha1.Remediation, phase v1alpha1.Phase, message string) error {
	now := metav1.NewMicroTime(d.Now())
	rem.Status.Phase, rem.Status.Message, rem.Status.Ended = phase, message, &now
	return d.Save(ctx, rem)
}

// atTerminal looks at a plan that a terminal carries out: it is never begun here. One that
// was begun, and does not move any more, is taken back, if our mark shows that its person
// had the right to change a node.
func (x *Executor) atTerminal(ctx context.Context, rem *v1alpha1.Remediation) (time.Duration, error) {
	if !rem.Status.Phase.Begun() {
		if left := rem.Spec.Expires.Sub(x.Now()); left > 0 {
			return left, nil
		}
		return 0, x.finish(ctx, rem, v1alpha1.Expired, "its terminal has ended before the first step")
	}
	x.mu.Lock()
	ours := x.machines[rem.Name]
	x.mu.Unlock()
	if ours != nil && ours.Wrote(rem) {
		return x.goOn(ctx, rem)
	}
	if x.moves(rem) {
		return renewEvery, nil
	}
	marked, err := x.marked(ctx, rem)
	if err != nil {
		return 0, err
	}
	if !marked || !journal.Abandon(rem, lostTerminal(rem), x.Now()) {
		return 0, x.finish(ctx, rem, v1alpha1.Stopped, lostTerminal(rem)+"; no node carries its mark, what it did to pods and workloads stays")
	}
	if err := x.store.Save(ctx, rem); err != nil {
		return 0, err
	}
	x.Logger.WarnContext(ctx, "a terminal's plan is taken back", "plan", rem.Name, "requester", rem.Spec.Requester)
	return x.goOn(ctx, rem)
}

// moved is a plan's version and when we first saw it.
type moved struct {
	version string
	at      time.Time // monotonic
}

// moves says whether the journal of a terminal's plan was written of late.
func (x *Executor) moves(rem *v1alpha1.Remediation) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	last, known := x.carried[rem.Name]
	if !known || last.version != rem.ResourceVersion {
		x.carried[rem.Name] = moved{rem.ResourceVersion, time.Now()}
		return true
	}
	return time.Since(last.at) < x.carrierGone
}
