package executor

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/remediate/pace"
)

// The leader's lease is taken for renewed while its time is at most so far from our
// own clock: two lease durations into the past, one into the future.
const (
	mostBehind = 2 * pace.Lease
	mostAhead  = pace.Lease
	// watchLease is how long a lease of another time is watched: its holder renews it
	// every pace.Retry.
	watchLease = 2*pace.Retry + time.Second
)

// Leader reads the lease of the executor that carries plans out; nil when none does. A time in
// it that is far from ours says nothing, for either clock may be wrong: then whether it
// is renewed is watched, which takes watchLease. The error is that of reading it.
func Leader(ctx context.Context, d Deps, namespace string) (*coordinationv1.Lease, error) {
	leases := d.Client.CoordinationV1().Leases(namespace)
	first, err := leases.Get(ctx, LeaderLease, metav1.GetOptions{})
	if err != nil || ptr.Deref(first.Spec.HolderIdentity, "") == "" || first.Spec.RenewTime == nil {
		return nil, err
	}
	if age := d.Now().Sub(first.Spec.RenewTime.Time); -mostAhead < age && age < mostBehind {
		return first, nil
	}
	began := time.Now() // monotonic, as nothing in the lease is
	for time.Since(began) < watchLease {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pace.Retry / 4):
		}
		now, err := leases.Get(ctx, LeaderLease, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if !now.Spec.RenewTime.Equal(first.Spec.RenewTime) && ptr.Deref(now.Spec.HolderIdentity, "") != "" {
			return now, nil
		}
	}
	return nil, nil
}
