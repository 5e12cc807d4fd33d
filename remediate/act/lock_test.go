package act

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A lock keeps others off for as long as its plan is under way. One that was left, as
// by a write that arrives when the plan has long ended, is taken over.
func TestLockIsTakenOver(t *testing.T) {
	for _, tc := range []struct {
		name    string
		holder  string
		phase   v1alpha1.Phase
		renewed time.Duration
		refused bool
	}{
		{"nobody's", "", "", 0, false},
		{"our own", "this-plan-of-mine", v1alpha1.Running, time.Minute, false},
		{"under way", "other", v1alpha1.Running, time.Minute, true},
		{"on the way back", "other", v1alpha1.Undoing, time.Minute, true},
		{"for longer than it says", "other", v1alpha1.Undoing, 2 * lockLease, true},
		{"ended", "other", v1alpha1.Failed, time.Minute, false},
		{"parked", "other", v1alpha1.Parked, time.Minute, false},
		{"forgotten", "gone", "", time.Minute, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := memory()
			d.Locks = "unpend"
			leases := d.Client.CoordinationV1().Leases("unpend")
			if tc.holder != "" {
				renewed := metav1.NewMicroTime(noon.Add(-tc.renewed))
				if _, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "unpend-node-gpu-1"},
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &tc.holder, RenewTime: &renewed}}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if tc.phase != "" {
				other := this()
				other.Name, other.Status.Phase = tc.holder, tc.phase
				if _, err := (plan.Store{Dynamic: d.Dynamic}).Record(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			s := relayoutOf(d, diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1"}, Relayout: &diagnosis.Relayout{}})
			missing, err := s.lock(t.Context(), line())
			if errors.Is(err, plan.ErrRefused) != tc.refused || err != nil && !tc.refused || missing != "" {
				t.Errorf("%q, %v", missing, err)
			}
			l, err := leases.Get(t.Context(), "unpend-node-gpu-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if holder := ptr.Deref(l.Spec.HolderIdentity, ""); (holder == "this-plan-of-mine") == tc.refused {
				t.Errorf("the holder is %s", holder)
			}
			if _, err := s.unlock(t.Context(), line()); err != nil {
				t.Error(err)
			}
			list, err := leases.List(t.Context(), metav1.ListOptions{})
			if err != nil || (len(list.Items) == 1) != tc.refused {
				t.Errorf("%d locks are left, %v", len(list.Items), err)
			}
		})
	}
}
