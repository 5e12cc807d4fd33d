package executor

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// paused turns the kill switch.
func (c *cell) paused(t *testing.T, on bool) {
	t.Helper()
	maps := c.Client().CoreV1().ConfigMaps(c.ns)
	patch := fmt.Appendf(nil, `{"data":{%q:"%v"}}`, guard.PausedKey, on)
	if _, err := maps.Patch(t.Context(), guard.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
		return
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: guard.ConfigMap}, Data: map[string]string{guard.PausedKey: fmt.Sprint(on)}}
	if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// looksAt has an executor that knows nothing look at a plan, so long from now, and
// wants its phase.
func (c *cell) looksAt(t *testing.T, name string, after time.Duration, phase v1alpha1.Phase, says string) {
	t.Helper()
	x := c.executor()
	x.Now = func() time.Time { return time.Now().Add(after) }
	if _, err := x.Look(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	ended(t, c.read(t, name), phase, says)
}

// A plan that was approved while the kill switch was on does not begin by surprise when
// it is switched off, once the plan's time has passed: whether somebody looked while it
// was on or not.
func TestSwitchedOffTooLate(t *testing.T) {
	c := newCell(t)
	node, d, f, holders := repartition(t, c)
	const isOff = "until paused is false in ConfigMap " + guard.ConfigMap
	for _, late := range []time.Duration{plan.Lifetime, plan.Lifetime + time.Hour} {
		for _, looked := range []bool{false, true} {
			c.paused(t, true)
			rem := c.recorded(t, d, f)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			c.looksAt(t, rem.Name, 0, v1alpha1.Queued, isOff)
			c.looksAt(t, rem.Name, plan.Lifetime-time.Minute, v1alpha1.Queued, isOff)
			if looked {
				c.looksAt(t, rem.Name, late, v1alpha1.Expired, "the plan expired at ")
			}
			c.paused(t, false)
			c.looksAt(t, rem.Name, late, v1alpha1.Expired, "the plan expired at ")
			c.looksAt(t, rem.Name, 0, v1alpha1.Expired, "the plan expired at ") // a clock that was set back
			c.forget(t)
		}
	}
	c.wrote(t, nil)
	c.untouched(t, holders...)
	c.asBefore(t, node)
}

// Who has said yes can say no: before the plan has begun, and while it is under way.
func TestNoAfterYes(t *testing.T) {
	c := newCell(t)
	node, d, f, holders := repartition(t, c)
	c.paused(t, true)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	c.looksAt(t, rem.Name, 0, v1alpha1.Queued, "paused by a person")
	no := plan.NewApproval(rem, "alice", nil, v1alpha1.Reject)
	no.Spec.Reason = "the nightly job"
	made, err := plan.Store{Dynamic: c.Dynamic()}.Decide(t.Context(), no)
	if err != nil || made.Name != rem.Name+"-no" {
		t.Fatalf("%+v, %v", made, err)
	}
	c.paused(t, false)
	c.looksAt(t, rem.Name, 0, v1alpha1.Rejected, "alice said no: the nightly job")
	c.wrote(t, nil)

	c.forget(t)
	rem = c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	c.on["evict "] = func() { c.decide(t, rem, "alice", v1alpha1.Reject) }
	rem = c.carriedOut(t, rem.Name, c.one())
	ended(t, rem, v1alpha1.Stopped, "evict "+c.ns+"/inference-", "halted: alice said no")
	if rem.Status.EndsAs != v1alpha1.Stopped || rem.Status.Evicted != 0 {
		t.Errorf("%+v", rem.Status)
	}
	c.evictions(t, f, 0)
	c.untouched(t, holders...)
	c.asBefore(t, node)
	c.noLocks(t)
}

// A no is of the plan that was read, and one is enough; a yes under its name is none.
func TestOneNoIsEnough(t *testing.T) {
	c := newCell(t)
	_, d, f, _ := repartition(t, c)
	rem := c.recorded(t, d, f)
	store := plan.Store{Dynamic: c.Dynamic()}
	say := func(who string, decision v1alpha1.Decision) string {
		a, err := store.Decide(t.Context(), plan.NewApproval(rem, who, nil, decision))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s by %s", a.Name[len(rem.Name):], a.Spec.Approver)
	}
	for i, got := range []string{say("alice", v1alpha1.Approve), say("bob", v1alpha1.Approve), say("carol", v1alpha1.Reject), say("alice", v1alpha1.Reject)} {
		if want := []string{" by alice", "-2 by bob", "-no by carol", "-no by carol"}[i]; got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	yes := plan.NewApproval(rem, "mallory", nil, v1alpha1.Approve)
	yes.Name += "-no"
	if _, err := c.Dynamic().Resource(v1alpha1.Approvals).Create(t.Context(), object(t, yes), metav1.CreateOptions{}); err == nil {
		t.Error("a yes was taken under the name of a no")
	}
	yes.Spec.Decision = v1alpha1.Approve
	if ok, by, _ := guard.Approved(rem, []v1alpha1.Approval{*yes}, 1); ok || len(by) > 0 {
		t.Errorf("it counts: %v", by)
	}
	rem.UID = "made-again"
	for _, decision := range []v1alpha1.Decision{v1alpha1.Approve, v1alpha1.Reject} {
		want := "refused: alice has said Approve to an earlier plan of that name: approval " + rem.Name + " has to be deleted first"
		if got := say("alice", decision); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
