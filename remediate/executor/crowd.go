package executor

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// crowdOut ends the plans that nobody has decided on and that want the same room as one that
// begins: what they were proved on will not be so any more. One that is approved is proved
// again before it begins, and says itself what has changed.
func (x *Executor) crowdOut(ctx context.Context, rem *v1alpha1.Remediation) error {
	plans, err := x.store.List(ctx)
	if err != nil {
		return fmt.Errorf("list the plans that want the same room: %w", err)
	}
	for i := range plans {
		other := &plans[i]
		room := guard.SameRoom(rem, other)
		if other.Name == rem.Name || room == "" || other.Status.Phase.Ended() || other.Status.Phase.Begun() || other.Spec.Carrier != "" {
			continue
		}
		said, err := x.store.Approvals(ctx, other.Name)
		if err != nil {
			return err
		}
		if actor(other.UID, said) != nil {
			continue
		}
		says := fmt.Sprintf("%v: plan %s is carried out, and wants the same room (%s): ask for a new plan once it has ended", plan.ErrStale, guard.Called(rem), room)
		if err := x.finish(ctx, other, v1alpha1.Stale, says); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
