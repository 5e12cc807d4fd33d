package act

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
)

// lockLease is what a lock says of itself: longer than a plan can take. Nobody goes by
// it, for clocks differ and jump: a lock is held until the plan that has it has ended.
const lockLease = time.Hour

// lockPrefix is before a node's name in its lock's.
const lockPrefix = "unpend-node-"

func (m marked) lockName() string { return lockPrefix + m.Target.Name }

// underLock has steps taken while the plan holds the node's lock.
func (m marked) underLock(steps []journal.Step) []journal.Step {
	if m.Locks == "" {
		return steps
	}
	out := []journal.Step{{ID: m.id("lock"), Text: "lock " + m.Target.Name, Within: pace.Contention, Try: m.lock}}
	return append(append(out, steps...), journal.Step{ID: m.id("unlock"), Text: "unlock " + m.Target.Name, Within: pace.Contention, Try: m.unlock})
}

// unlockBack is the step of the way back that gives the lock back.
func (m marked) unlockBack() []journal.Step {
	if m.Locks == "" {
		return nil
	}
	return []journal.Step{{ID: m.backID("unlock"), Text: "unlock " + m.Target.Name, Within: pace.Contention, Try: m.unlock}}
}

// lock takes the lease of the node: of all plans for it, one goes on.
func (m marked) lock(ctx context.Context, _ *journal.Entry) (string, error) {
	if m.DryRun {
		return "", nil // who tries it out may not write the executor's leases
	}
	leases := m.Client.CoordinationV1().Leases(m.Locks)
	now := metav1.NewMicroTime(m.Now())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &m.rem.Name, AcquireTime: &now, RenewTime: &now, LeaseDurationSeconds: new(int32(lockLease.Seconds()))}
	l, err := leases.Get(ctx, m.lockName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.lockName()}, Spec: spec}, metav1.CreateOptions{FieldManager: plan.FieldManager})
	case err != nil:
	case ptr.Deref(l.Spec.HolderIdentity, "") == m.rem.Name:
		return "", nil
	default:
		err = m.takeOver(ctx, l, spec)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return "others want the lock", nil
	}
	if err != nil {
		return "", fmt.Errorf("lock node %s: %w", m.Target.Name, err)
	}
	return "", nil
}

// takeOver takes a lock that was left: by a plan that is not under way, whose executor
// was cut off and whose write came late. No clock is asked: they differ.
func (m marked) takeOver(ctx context.Context, l *coordinationv1.Lease, spec coordinationv1.LeaseSpec) error {
	holder := ptr.Deref(l.Spec.HolderIdentity, "")
	rem, err := plan.Store{Dynamic: m.Dynamic}.Get(ctx, holder)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read plan %s, which holds the lock: %w", holder, err)
	}
	if err == nil && rem.Status.Phase.Begun() {
		return fmt.Errorf("%w: node %s is locked by plan %s", plan.ErrRefused, m.Target.Name, holder)
	}
	l.Spec = spec
	_, err = m.Client.CoordinationV1().Leases(m.Locks).Update(ctx, l, metav1.UpdateOptions{FieldManager: plan.FieldManager})
	return err
}

// unlock gives the lease back, if it is ours.
func (m marked) unlock(ctx context.Context, _ *journal.Entry) (string, error) {
	if m.DryRun {
		return "", nil
	}
	l, err := m.Client.CoordinationV1().Leases(m.Locks).Get(ctx, m.lockName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ptr.Deref(l.Spec.HolderIdentity, "") != m.rem.Name {
		return "", nil
	}
	if err == nil {
		err = m.deleteLock(ctx, l)
	}
	if err == nil || apierrors.IsNotFound(err) {
		return "", nil
	}
	if apierrors.IsConflict(err) {
		return "others write to it", nil
	}
	return "", fmt.Errorf("unlock node %s: %w", m.Target.Name, err)
}

// deleteLock deletes a lock as it was read.
func (r *run) deleteLock(ctx context.Context, l *coordinationv1.Lease) error {
	return r.Client.CoordinationV1().Leases(l.Namespace).Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}})
}

// unlockAll gives back every lock that the plan holds, whatever it says of its nodes.
func (r *run) unlockAll(ctx context.Context) error {
	if r.Locks == "" {
		return nil
	}
	list, err := r.Client.CoordinationV1().Leases(r.Locks).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the locks of plan %s: %w", r.rem.Name, err)
	}
	for i := range list.Items {
		l := &list.Items[i]
		if !strings.HasPrefix(l.Name, lockPrefix) || ptr.Deref(l.Spec.HolderIdentity, "") != r.rem.Name {
			continue
		}
		if err := r.deleteLock(ctx, l); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("give lock %s back: %w", l.Name, err)
		}
	}
	return nil
}
