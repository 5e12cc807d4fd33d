package remediate

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A lock keeps others off for as long as its plan is under way. One that was left, as
// by a write that arrives when the plan has long ended, is taken over.
func TestLockIsTakenOver(t *testing.T) {
	c := newCell(t)
	_, d, f, _ := repartition(t, c)
	other := c.recorded(t, d, f)
	leases := c.Client().CoordinationV1().Leases(c.ns)
	deps := c.deps
	deps.Locks = c.ns
	s := &saga{runner: &runner{Deps: deps, rem: &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: "this"}}}, target: diagnosis.Target{Kind: "Node", Name: c.name(1)}}
	for _, tc := range []struct {
		name    string
		holder  string
		phase   v1alpha1.Phase
		renewed time.Duration
		refused bool
	}{
		{"under way", other.Name, v1alpha1.Running, time.Minute, true},
		{"on the way back", other.Name, v1alpha1.Undoing, time.Minute, true},
		{"for longer than it says", other.Name, v1alpha1.Undoing, 2 * lockLease, true},
		{"ended", other.Name, v1alpha1.Failed, time.Minute, false},
		{"parked", other.Name, v1alpha1.Parked, time.Minute, false},
		{"forgotten", "gone", "", time.Minute, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.phase != "" {
				other.Status.Phase = tc.phase
				if err := (Store{c.Dynamic()}).Save(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			renewed := metav1.NewMicroTime(time.Now().Add(-tc.renewed))
			if _, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: s.lockName()},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &tc.holder, RenewTime: &renewed}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			missing, err := s.lock(t.Context(), nil)
			if errors.Is(err, ErrRefused) != tc.refused || err != nil && !tc.refused || missing != "" {
				t.Errorf("%q, %v", missing, err)
			}
			l, err := leases.Get(t.Context(), s.lockName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if holder := ptr.Deref(l.Spec.HolderIdentity, ""); (holder == "this") == tc.refused {
				t.Errorf("the holder is %s", holder)
			}
			if err := leases.Delete(t.Context(), s.lockName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
