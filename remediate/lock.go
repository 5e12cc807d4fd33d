package remediate

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// lockLease is what a lock says of itself: longer than a plan can take. Nobody goes by
// it, for clocks differ and jump: a lock is held until the plan that has it has ended.
const lockLease = time.Hour

// lockPrefix is before a node's name in its lock's.
const lockPrefix = "unpend-node-"

func (s *saga) lockName() string { return lockPrefix + s.target.Name }

// lock takes the lease of the node: of all plans for it, one goes on.
func (s *saga) lock(ctx context.Context, _ *entry) (string, error) {
	leases := s.Client.CoordinationV1().Leases(s.Locks)
	now := metav1.NewMicroTime(s.Now())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &s.rem.Name, AcquireTime: &now, RenewTime: &now, LeaseDurationSeconds: new(int32(lockLease.Seconds()))}
	l, err := leases.Get(ctx, s.lockName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: s.lockName()}, Spec: spec}, metav1.CreateOptions{FieldManager: fieldManager})
	case err != nil:
	case ptr.Deref(l.Spec.HolderIdentity, "") == s.rem.Name:
		return "", nil
	default:
		err = s.takeOver(ctx, l, spec)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return "others want the lock", nil
	}
	if err != nil {
		return "", fmt.Errorf("lock node %s: %w", s.target.Name, err)
	}
	return "", nil
}

// takeOver takes a lock that was left: by a plan that is not under way, whose executor
// was cut off and whose write came late. No clock is asked: they differ.
func (s *saga) takeOver(ctx context.Context, l *coordinationv1.Lease, spec coordinationv1.LeaseSpec) error {
	holder := ptr.Deref(l.Spec.HolderIdentity, "")
	rem, err := Store{s.Dynamic}.Get(ctx, holder)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read plan %s, which holds the lock: %w", holder, err)
	}
	if err == nil && rem.Status.Phase.Begun() {
		return fmt.Errorf("%w: node %s is locked by plan %s", ErrRefused, s.target.Name, holder)
	}
	l.Spec = spec
	_, err = s.Client.CoordinationV1().Leases(s.Locks).Update(ctx, l, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}

// unlock gives the lease back, if it is ours.
func (s *saga) unlock(ctx context.Context, _ *entry) (string, error) {
	l, err := s.Client.CoordinationV1().Leases(s.Locks).Get(ctx, s.lockName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ptr.Deref(l.Spec.HolderIdentity, "") != s.rem.Name {
		return "", nil
	}
	if err == nil {
		err = s.deleteLock(ctx, l)
	}
	if err == nil || apierrors.IsNotFound(err) {
		return "", nil
	}
	if apierrors.IsConflict(err) {
		return "others write to it", nil
	}
	return "", fmt.Errorf("unlock node %s: %w", s.target.Name, err)
}

// deleteLock deletes a lock as it was read.
func (d Deps) deleteLock(ctx context.Context, l *coordinationv1.Lease) error {
	return d.Client.CoordinationV1().Leases(l.Namespace).Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}})
}

// unlockAll gives back what a plan holds whose own word on its nodes is not to be trusted.
func (x *Executor) unlockAll(ctx context.Context, plan string) error {
	if x.Locks == "" {
		return nil
	}
	list, err := x.Client.CoordinationV1().Leases(x.Locks).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the locks of plan %s: %w", plan, err)
	}
	for i := range list.Items {
		l := &list.Items[i]
		if !strings.HasPrefix(l.Name, lockPrefix) || ptr.Deref(l.Spec.HolderIdentity, "") != plan {
			continue
		}
		if err := x.deleteLock(ctx, l); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("give lock %s back: %w", l.Name, err)
		}
	}
	return nil
}
