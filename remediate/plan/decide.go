package plan

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Word is a decision as it comes in from another place than a terminal.
type Word struct {
	Caller
	// Plan and the uid of the Remediation that the person was shown: an object that was
	// made again under that name is another.
	Plan        string
	Remediation types.UID
	Decision    v1alpha1.Decision
	Reason      string // at most 1024 bytes
}

// Decider takes the decisions of those who have no kubeconfig at hand: everything that
// comes in by Slack, PagerDuty or the web page goes through Decide, and through nothing
// else.
type Decider struct {
	Identities Identities
	// Dynamic reads plans and decisions, as the service itself.
	Dynamic dynamic.Interface
	// ActAs makes a client that creates the decision as the person, so that RBAC and the
	// admission policy judge them, not us.
	ActAs func(user string, groups []string) (dynamic.Interface, error)
	// Persons says how many have to approve a plan, and why (the executor's Persons).
	Persons func(ctx context.Context, rem *v1alpha1.Remediation) (n int, why string, err error)
}

// Decide makes a word an Approval, created as the user and with the groups that its
// caller is mapped to. It may be called again with the same word, also at the same time
// from elsewhere: there is one Approval, which is given back each time. ErrRefused and
// ErrStale say that nothing was created; for a caller that nobody knows nothing is even
// read. Any other error says that it has to be called again.
func (d Decider) Decide(ctx context.Context, w Word) (*v1alpha1.Approval, error) {
	who, err := d.Identities.Of(w.Caller)
	if err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	store := Store{d.Dynamic}
	rem, err := store.Get(ctx, w.Plan)
	if apierrors.IsNotFound(err) || err == nil && rem.UID != w.Remediation {
		return nil, fmt.Errorf("%w: plan %.12s is no longer recorded as it was shown", ErrStale, w.Plan)
	}
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", w.Plan, err)
	}
	said, err := store.said(ctx, rem, who.User, w.Decision)
	if err != nil || said != nil {
		return said, err
	}
	if err := open(rem, w.Decision); err != nil {
		return nil, err
	}
	if err := d.forOthers(ctx, rem, who.User, w.Decision); err != nil {
		return nil, err
	}
	as, err := d.ActAs(who.User, who.Groups)
	if err != nil {
		return nil, err
	}
	a := NewApproval(rem, who.User, who.Groups, w.Decision)
	a.Spec.Via, a.Spec.Reason = w.Via, w.Reason
	return store.say(ctx, a, as)
}

// forOthers refuses the yes of who asked for a plan that two others have to approve: it
// would not count, and takes the place of one that does.
func (d Decider) forOthers(ctx context.Context, rem *v1alpha1.Remediation, who string, decision v1alpha1.Decision) error {
	if decision != v1alpha1.Approve || who != rem.Spec.Requester {
		return nil
	}
	n, why, err := d.Persons(ctx, rem)
	if err != nil || n < 2 {
		return err
	}
	return fmt.Errorf("%w: you have asked for this plan, and two others have to approve it (%s)", ErrRefused, why)
}

// longestReason is what the API takes.
const longestReason = 1024

func (w Word) check() error {
	switch {
	case !audit.IsHash(w.Plan) || w.Remediation == "":
		return fmt.Errorf("%w: %q of %q is no plan", ErrRefused, w.Plan, w.Remediation)
	case w.Decision != v1alpha1.Approve && w.Decision != v1alpha1.Reject:
		return fmt.Errorf("%w: %q is no decision", ErrRefused, w.Decision)
	case len(w.Reason) > longestReason:
		return fmt.Errorf("%w: the reason has %d bytes, at most %d are taken", ErrRefused, len(w.Reason), longestReason)
	}
	return nil
}

// open says why nothing more can be said to a plan; nil when it can. A second yes to one
// that another has set going in the same second is on record, and changes nothing. To what a
// newer program has planned, and this one cannot show, only a no is taken.
func open(rem *v1alpha1.Remediation, decision v1alpha1.Decision) error {
	if decision == v1alpha1.Approve && rem.Newer() {
		return newer(rem)
	}
	if phase := rem.Status.Phase; phase.Ended() || phase == v1alpha1.Undoing {
		return fmt.Errorf("%w: the plan is %s already: %s", ErrRefused, phase, rem.Status.Message)
	}
	return nil
}

// said is what somebody has said to a plan before; nil when it is not this.
func (s Store) said(ctx context.Context, rem *v1alpha1.Remediation, who string, decision v1alpha1.Decision) (*v1alpha1.Approval, error) {
	approvals, err := s.Approvals(ctx, rem.Name)
	for i := range approvals {
		if a := &approvals[i]; a.Spec.Approver == who && a.Spec.Remediation == string(rem.UID) && a.Spec.Decision == decision {
			return a, nil
		}
	}
	return nil, err
}

// Say records what somebody says of a plan as themselves, at a terminal with a kubeconfig
// of their own. ErrRefused: they may not, or have said something else before.
func (s Store) Say(ctx context.Context, a *v1alpha1.Approval) (*v1alpha1.Approval, error) {
	return s.say(ctx, a, s.Dynamic)
}

func (s Store) say(ctx context.Context, a *v1alpha1.Approval, as dynamic.Interface) (*v1alpha1.Approval, error) {
	says := a.Spec.Decision
	made, err := s.decide(ctx, a, Store{as})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err == nil && made.Spec.Decision != says {
		return nil, fmt.Errorf("%w: you have said %s to this plan already", ErrRefused, made.Spec.Decision)
	}
	return made, err
}
