package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// look again at a plan that a guard-rail holds back, when nothing says when.
const holdBack = 5 * time.Second

// begin decides whether a plan that nobody has begun may begin now.
func (x *Executor) begin(ctx context.Context, rem *v1alpha1.Remediation) (time.Duration, error) {
	approvals, err := x.store.Approvals(ctx, rem.Name)
	if err != nil {
		return 0, err
	}
	if cleared, err := x.clear(ctx, rem, approvals); err != nil || cleared {
		return 0, err // their deletion is news
	}
	if no := rejection(rem, approvals); no != "" {
		return 0, x.finish(ctx, rem, v1alpha1.Rejected, no)
	}
	set, err := x.rails().read(ctx)
	if _, ok := errors.AsType[*unclear](err); ok {
		return x.unclear(ctx, rem, err)
	}
	if err != nil {
		return 0, err
	}
	persons, why := set.limits.Persons(rem)
	ok, by, lacks := guard.Approved(rem, approvals, persons)
	if !ok {
		if !x.Now().Before(rem.Spec.Expires.Time) {
			return 0, x.finish(ctx, rem, v1alpha1.Expired, "nobody with the right to has approved it in time")
		}
		if persons > 1 {
			lacks += " (two persons: " + why + ")"
		}
		again := rem.Spec.Expires.Sub(x.Now())
		if len(approvals) > 0 { // they may be enough once a person has changed the limits
			again = min(again, holdBack)
		}
		return again, x.note(ctx, rem, v1alpha1.Pending, lacks)
	}
	rem.Status.ApprovedBy = by
	view, err := x.rails().view(ctx, set, rem)
	if err != nil {
		return 0, err
	}
	switch verdict := set.limits.Judge(view, rem); verdict.Decision {
	case guard.Refuse:
		return 0, x.finish(ctx, rem, verdict.Phase, verdict.Reason)
	case guard.Wait:
		again := holdBack
		if left := verdict.Until.Sub(x.Now()); left > 0 {
			again = min(again, left)
		}
		return again, x.note(ctx, rem, verdict.Phase, verdict.Reason)
	}
	if lacks, err := x.lacks(ctx, rem, approvals); err != nil || lacks != "" {
		if err == nil {
			err = x.finish(ctx, rem, v1alpha1.Refused, lacks)
		}
		return 0, err
	}
	return x.start(ctx, rem)
}

// clear deletes decisions on an earlier plan of the name: the person who records it again
// may not, and nobody could decide on it with them in the way.
func (x *Executor) clear(ctx context.Context, rem *v1alpha1.Remediation, approvals []v1alpha1.Approval) (bool, error) {
	left := slices.DeleteFunc(slices.Clone(approvals), func(a v1alpha1.Approval) bool { return a.Spec.Remediation == string(rem.UID) })
	if len(left) == 0 {
		return false, nil
	}
	// They may be about a plan that has been recorded again since we read it.
	if now, err := x.store.Get(ctx, rem.Name); err != nil || now.UID != rem.UID {
		return true, err
	}
	for _, a := range left {
		if err := x.store.Withdraw(ctx, &a); err != nil {
			return false, fmt.Errorf("delete approval %s of an earlier plan: %w", a.Name, err)
		}
	}
	return true, nil
}

// rejection says who said no; empty when nobody did.
func rejection(rem *v1alpha1.Remediation, approvals []v1alpha1.Approval) string {
	for _, a := range approvals {
		if a.Spec.Decision == v1alpha1.Reject && a.Spec.Remediation == string(rem.UID) {
			return strings.TrimSuffix(a.Spec.Approver+" said no: "+a.Spec.Reason, ": ")
		}
	}
	return ""
}

// note writes where a plan stands that waits, if that is news.
func (x *Executor) note(ctx context.Context, rem *v1alpha1.Remediation, phase v1alpha1.Phase, message string) error {
	if rem.Status.Phase == phase && rem.Status.Message == message {
		return nil
	}
	rem.Status.Phase, rem.Status.Message = phase, message
	return x.store.Save(ctx, rem)
}

// unclear keeps a plan from being begun while nobody can tell within which limits, and
// says so where its approver looks.
func (x *Executor) unclear(ctx context.Context, rem *v1alpha1.Remediation, err error) (time.Duration, error) {
	left := rem.Spec.Expires.Sub(x.Now())
	if left <= 0 {
		return 0, x.finish(ctx, rem, v1alpha1.Expired, err.Error())
	}
	return min(left, holdBack), x.note(ctx, rem, cmp.Or(rem.Status.Phase, v1alpha1.Pending), err.Error())
}

// actor is the person a plan is carried out as: the first who approved it.
func actor(rem types.UID, approvals []v1alpha1.Approval) *v1alpha1.Approval {
	for i := range approvals {
		if a := &approvals[i]; a.Spec.Decision == v1alpha1.Approve && a.Spec.Remediation == string(rem) && !strings.HasSuffix(a.Name, v1alpha1.No) {
			return a
		}
	}
	return nil
}
