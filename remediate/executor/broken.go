package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// broken ends a plan that cannot be trusted. Where it was begun, the nodes that carry
// its mark are left cordoned with the reason on them: what was done is not guessed at.
func (x *Executor) broken(ctx context.Context, rem *v1alpha1.Remediation, why error) error {
	phase, message, err := x.putAside(ctx, rem, why)
	if err != nil {
		return err
	}
	if rem.Status.Phase.Begun() {
		rem.Status.Failure = message
	}
	return x.finish(ctx, rem, phase, message)
}

// putAside parks what a plan has marked, gives its locks back, for the mark keeps others
// off until a person has seen to the node, and says how the plan ends.
func (x *Executor) putAside(ctx context.Context, rem *v1alpha1.Remediation, why error) (v1alpha1.Phase, string, error) {
	if !rem.Status.Phase.Begun() {
		return v1alpha1.Refused, why.Error(), nil
	}
	parked, err := act.Park(ctx, x.acting(), rem, why)
	if err != nil {
		return "", "", err
	}
	if len(parked) == 0 {
		return v1alpha1.Failed, why.Error() + "; nothing more is written, no node carries our mark, and it holds no lock", nil
	}
	return v1alpha1.Parked, fmt.Sprintf("%v; nothing more is written, node %s is parked, cordoned on purpose, and its lock is given back", why, strings.Join(parked, ", ")), nil
}

// refuse ends a plan that cannot be read, in the fields that are known.
func (x *Executor) refuse(ctx context.Context, u *plan.Unreadable) (time.Duration, error) {
	rem := u.Head()
	if rem.Status.Phase.Ended() {
		made := metav1.NewMicroTime(rem.CreationTimestamp.Time)
		rem.Status.Ended = &made
		return x.ended(ctx, rem)
	}
	if err := x.leading(ctx); err != nil {
		return 0, err
	}
	phase, message, err := x.putAside(ctx, rem, u.Why)
	if err != nil {
		return 0, err
	}
	if err := x.store.End(ctx, u, phase, message, x.Now()); err != nil {
		return 0, err
	}
	rem.Status.Phase, rem.Status.Message = phase, message
	x.metrics.end(&rem.Status)
	x.logEnd(ctx, rem)
	return x.Keep, nil
}
