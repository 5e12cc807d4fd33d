package desk

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Answer is what came of a word.
type Answer struct {
	// Plan as it is recorded.
	Plan *v1alpha1.Remediation
	// Approval is the word. Nil: it would not count, because who asked for a plan that two
	// have to approve is none of them; then Why says why it takes two.
	Approval *v1alpha1.Approval
	Why      string
}

// Approve says yes to the plan of an incident. plan.ErrStale: it is no longer the plan, and
// plan.ErrRefused: it, or this person, may not; both say why, and nothing was decided. The same
// word again has the same answer, also while the plan is carried out.
func (v Visitor) Approve(ctx context.Context, incident, name string) (Answer, error) {
	if a, err := v.before(ctx, name); err != nil || a.Approval != nil {
		return a, err
	}
	found, err := v.find(ctx, incident, name)
	if err == nil && found.Fix.Held != "" {
		err = fmt.Errorf("%w: %q is held back now: %s", plan.ErrRefused, found.Fix.Title, found.Fix.Held)
	}
	if err != nil {
		if a, e := v.before(ctx, name); e == nil && a.Approval != nil { // it has begun meanwhile, and changes the cluster
			return a, nil
		}
		return Answer{}, err
	}
	return v.Carry(ctx, found)
}

// before is what was decided earlier: by this person, whose word it then still is, or so that
// a yes comes too late. The answer is empty where neither is so.
func (v Visitor) before(ctx context.Context, name string) (Answer, error) {
	rem, err := v.desk.store().Get(ctx, name)
	if apierrors.IsNotFound(err) {
		return Answer{}, nil
	}
	if err != nil {
		return Answer{}, fmt.Errorf("read plan %.12s: %w", name, err)
	}
	approvals, err := v.desk.store().Approvals(ctx, name)
	if err != nil {
		return Answer{}, err
	}
	var by []string
	for i := range approvals {
		a := &approvals[i]
		if a.Spec.Remediation != string(rem.UID) || a.Spec.Decision != v1alpha1.Approve {
			continue
		}
		if by = append(by, a.Spec.Approver); a.Spec.Approver == v.User && !rem.Status.Phase.Ended() {
			return Answer{Plan: rem, Approval: a}, nil
		}
	}
	switch phase := rem.Status.Phase; {
	case phase.Begun():
		return Answer{}, fmt.Errorf("%w: the plan is carried out already, approved by %s", plan.ErrRefused, strings.Join(by, " and "))
	case phase == v1alpha1.Succeeded, phase == v1alpha1.Parked:
		return Answer{}, over(rem)
	}
	return Answer{}, nil
}

func over(rem *v1alpha1.Remediation) error {
	return fmt.Errorf("%w: the plan is %s already: %s", plan.ErrRefused, rem.Status.Phase, rem.Status.Message)
}

// find looks for the plan on fresh state, unless another of that incident is under way: what is
// found meanwhile is found of a cluster that is being changed.
func (v Visitor) find(ctx context.Context, incident, name string) (plan.Found, error) {
	plans, err := v.desk.store().List(ctx)
	if err != nil {
		return plan.Found{}, fmt.Errorf("list plans: %w", err)
	}
	for _, rem := range plans {
		if rem.Spec.Incident == incident && rem.Name != name && rem.Status.Phase.Begun() {
			return plan.Found{}, fmt.Errorf("%w: plan %.12s for this incident is under way already: %s", plan.ErrRefused, rem.Name, rem.Spec.Title)
		}
	}
	return executor.Find(ctx, v.desk.Deps, incident, 0, name)
}

// Carry records a plan that was just found and says yes to it, unless that is for two others to
// say: there is room for the words of two, and that of who asked for the plan is none of them.
func (v Visitor) Carry(ctx context.Context, found plan.Found) (Answer, error) {
	rem, err := v.record(ctx, found)
	if err != nil {
		return Answer{}, err
	}
	n, why, err := executor.Persons(ctx, v.desk.Deps, v.desk.Namespace, rem)
	if err != nil {
		return Answer{}, err
	}
	if n > 1 && rem.Spec.Requester == v.User {
		return Answer{Plan: rem, Why: why}, nil
	}
	a, err := v.say(ctx, rem, v1alpha1.Approve, "")
	return Answer{Plan: rem, Approval: a}, err
}

// record has the plan in the API, as this person where nobody has recorded it before.
func (v Visitor) record(ctx context.Context, found plan.Found) (*v1alpha1.Remediation, error) {
	proposed := plan.Propose(found, v.User, v.desk.Now())
	if err := executor.Rested(ctx, v.desk.Deps, v.desk.Namespace, proposed.Name); err != nil {
		return nil, err
	}
	rem, err := v.desk.store().RecordAs(ctx, proposed, v.as)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w: %w", plan.ErrRefused, err)
	}
	if err != nil {
		return nil, fmt.Errorf("record plan %.12s: %w", proposed.Name, err)
	}
	if rem.Status.Phase.Ended() {
		return nil, over(rem)
	}
	return rem, nil
}

// Reject says no to the plan of an incident. One that nobody has recorded is recorded first, so
// that everybody sees who does not want it, and why.
func (v Visitor) Reject(ctx context.Context, incident, name, reason string) (Answer, error) {
	rem, err := v.desk.store().Get(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && again(rem.Status.Phase) {
		var found plan.Found
		if found, err = v.find(ctx, incident, name); err == nil {
			rem, err = v.record(ctx, found)
		}
	}
	if err != nil {
		return Answer{}, err
	}
	return v.No(ctx, rem, reason)
}

// again says of a plan that came to nothing that it may be asked for again.
func again(p v1alpha1.Phase) bool {
	return p.Ended() && p != v1alpha1.Succeeded && p != v1alpha1.Parked && p != v1alpha1.Rejected
}

// No says no to a plan that is recorded.
func (v Visitor) No(ctx context.Context, rem *v1alpha1.Remediation, reason string) (Answer, error) {
	if rem.Status.Phase.Ended() {
		return Answer{}, over(rem)
	}
	a, err := v.say(ctx, rem, v1alpha1.Reject, reason)
	return Answer{Plan: rem, Approval: a}, err
}

// Trial is what a plan would do.
type Trial struct {
	Fix   diagnosis.Fix
	Steps []string // as the journal names them
	// Held is why the guard-rails would not let it begin now; empty: they would.
	Held string
	// Persons who have to approve it; why, where it is more than one.
	Persons int
	Why     string
}

// DryRun says what a plan would do now, and writes nothing. Its errors are those of Approve.
func (v Visitor) DryRun(ctx context.Context, incident, name string) (Trial, error) {
	found, err := v.find(ctx, incident, name)
	if err != nil {
		return Trial{}, err
	}
	d := v.desk.Deps
	d.Locks = v.desk.Namespace // the steps are those of the executor
	out := Trial{Fix: found.Fix, Steps: executor.Steps(d, found), Held: found.Fix.Held}
	out.Persons, out.Why, err = executor.Persons(ctx, d, v.desk.Namespace, plan.Propose(found, v.User, d.Now()))
	return out, err
}
