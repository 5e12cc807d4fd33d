package executor

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// When a plan begins, those that want the same room and that nobody has decided on are stale
// at once, with a sentence that names it; approved ones, those of a terminal and those for
// other nodes stay as they are.
func TestConflictingPlansBecomeStale(t *testing.T) {
	c := newCell(t)
	node, d, f, _ := repartition(t, c)
	rem := c.recorded(t, d, f)
	other := func(n int, edit func(*v1alpha1.RemediationSpec)) *v1alpha1.Remediation {
		t.Helper()
		again := &v1alpha1.Remediation{TypeMeta: rem.TypeMeta, Spec: *rem.Spec.DeepCopy()}
		again.Spec.Incident = fmt.Sprintf("gpu-%010x", n)
		if edit != nil {
			edit(&again.Spec)
		}
		again.Name = plan.Name(again.Spec)
		made, err := (plan.Store{Dynamic: c.Dynamic()}).Record(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	elsewhere := func(s *v1alpha1.RemediationSpec) {
		s.Nodes, s.Node = []string{"elsewhere"}, "elsewhere"
		for i := range s.Actions {
			s.Actions[i].Target.Name, s.Actions[i].Target.UID = "elsewhere", "elsewhere"
			s.Actions[i].Relayout.Victims = nil
		}
	}
	sameNode, approved := other(1, nil), other(2, nil)
	byTerminal := other(3, func(s *v1alpha1.RemediationSpec) { s.Carrier = v1alpha1.Terminal })
	free := other(4, elsewhere)
	c.decide(t, approved, "alice", v1alpha1.Approve)
	if err := c.executor().crowdOut(t.Context(), rem); err != nil {
		t.Fatal(err)
	}
	want := map[types.UID]v1alpha1.Phase{sameNode.UID: v1alpha1.Stale, approved.UID: "", byTerminal.UID: "", free.UID: "", rem.UID: ""}
	for _, r := range []*v1alpha1.Remediation{rem, sameNode, approved, byTerminal, free} {
		if is := c.read(t, r.Name); is.Status.Phase != want[r.UID] {
			t.Errorf("%s: %q %s, want %q", r.Spec.Incident, is.Status.Phase, is.Status.Message, want[r.UID])
		}
	}
	ended(t, c.read(t, sameNode.Name), v1alpha1.Stale, fmt.Sprintf("plan is stale: plan %s#%d (%.8s) is carried out, and wants the same room (node %s): ask for a new plan once it has ended", rem.Spec.Incident, rem.Spec.Fix, rem.Name, node))
	c.wrote(t, nil)
	// The same by carrying it out.
	again := other(1, nil)
	store := plan.Store{Dynamic: c.Dynamic()}
	for _, r := range []*v1alpha1.Remediation{approved, byTerminal, free} {
		if err := store.Forget(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Until(again.CreationTimestamp.Add(1100 * time.Millisecond))) // of one second the name says which is newer
	rem = c.rerecorded(t, rem)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	ended(t, c.carriedOut(t, rem.Name, c.executor), v1alpha1.Succeeded, " runs")
	ended(t, c.read(t, again.Name), v1alpha1.Stale, "is carried out, and wants the same room (node "+node+")")
}

// rerecorded is a plan recorded once more, as the newest.
func (c *cell) rerecorded(t *testing.T, rem *v1alpha1.Remediation) *v1alpha1.Remediation {
	t.Helper()
	store := plan.Store{Dynamic: c.Dynamic()}
	if err := store.Forget(t.Context(), rem); err != nil {
		t.Fatal(err)
	}
	made, err := store.Record(t.Context(), &v1alpha1.Remediation{TypeMeta: rem.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: rem.Name}, Spec: rem.Spec})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
