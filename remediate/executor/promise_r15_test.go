package executor

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR15: a late yes, a yes to the older of two plans, to one that was carried out or
// has ended otherwise, or to an earlier object of that name: refused, and nothing is
// written; what is said of an earlier object is cleared away.
func promiseR15(t *testing.T, l lanes) {
	cp := <-l
	t.Cleanup(func() { l <- cp })
	c := newCellOn(t, cp)
	node, d, f, holders := repartition(t, c)
	refused, of := 0, 0
	for _, attempts := range []func(*testing.T, *cell, diagnosis.Diagnosis, diagnosis.Fix) (int, int){late, older, used, earlier} {
		n, m := attempts(t, c, d, f)
		refused, of = refused+n, of+m
	}
	c.wrote(t, slices.Repeat([]write{{verb: "delete", resource: "approvals", code: http.StatusOK}}, 30+15)) // those of earlier objects
	c.untouched(t, holders...)
	c.asBefore(t, node)
	if of < 100 {
		t.Errorf("only %d attempts", of)
	}
	report(t, refused, of, "late, older, used again, of an earlier object: 0 writes")
}

// refuses looks at a plan, and says whether it stands as it must, and says why.
func (c *cell) refuses(t *testing.T, x *Executor, name string, phase v1alpha1.Phase, says string) int {
	t.Helper()
	if _, err := x.Look(t.Context(), name); err != nil {
		t.Error(err)
		return 0
	}
	rem := c.read(t, name)
	if ended(t, rem, phase, says); rem.Status.Phase != phase || !strings.Contains(rem.Status.Message, says) || len(rem.Status.Journal) != 0 {
		return 0
	}
	return 1
}

// late: approved in time or not, and looked at once it has expired.
func late(t *testing.T, c *cell, d diagnosis.Diagnosis, f diagnosis.Fix) (refused, of int) {
	for i := range 15 {
		for _, inTime := range []bool{true, false} {
			after := plan.Lifetime + time.Duration(i*i)*time.Minute
			proposed := plan.Propose(plan.Found{State: c.state(t), Diagnosis: d, Fix: f}, "somebody", time.Now())
			if !inTime { // it says of itself that it is older
				proposed.Spec.Expires = metav1.NewTime(time.Now().Add(-time.Duration(i*i) * time.Minute))
				after = 0
			}
			rem, err := plan.Store{Dynamic: c.Dynamic()}.Record(t.Context(), proposed)
			if err != nil {
				t.Fatal(err)
			}
			c.decide(t, rem, "alice", v1alpha1.Approve)
			x := c.executor()
			x.Now = func() time.Time { return time.Now().Add(after) }
			refused, of = refused+c.refuses(t, x, rem.Name, v1alpha1.Expired, ""), of+1
			c.forget(t)
		}
	}
	return refused, of
}

// older: of two plans for a node the one that was recorded before.
func older(t *testing.T, c *cell, d diagnosis.Diagnosis, f diagnosis.Fix) (refused, of int) {
	variant := func(i int) diagnosis.Fix {
		f := f
		f.Actions = slices.Clone(f.Actions)
		how := *f.Actions[0].Relayout
		how.Config = fmt.Sprintf("variant-%d", i)
		f.Actions[0].Relayout = &how
		f.Plan = diagnosis.PlanHash(d.Incident, d.Pods.Since, f.Actions)
		return f
	}
	var olds []*v1alpha1.Remediation
	for i := range 30 {
		olds = append(olds, c.recorded(t, d, variant(i)))
	}
	last := olds[len(olds)-1].CreationTimestamp
	controlplane.Eventually(t, 5*time.Second, "a newer plan", func() (bool, string) { // creation times are whole seconds
		return time.Now().Truncate(time.Second).After(last.Time), ""
	})
	newest := c.recorded(t, d, variant(-1))
	for _, rem := range olds {
		c.decide(t, rem, "alice", v1alpha1.Approve)
		refused, of = refused+c.refuses(t, c.executor(), rem.Name, v1alpha1.Superseded, "is newer"), of+1
	}
	if now := c.read(t, newest.Name); now.Status.Phase.Ended() {
		t.Errorf("the newest is %s", now.Status.Phase)
	}
	c.forget(t)
	return refused, of
}

// used: a plan that has ended, however it did, is not begun again by another yes.
func used(t *testing.T, c *cell, d diagnosis.Diagnosis, f diagnosis.Fix) (refused, of int) {
	for _, phase := range []v1alpha1.Phase{v1alpha1.Succeeded, v1alpha1.Failed, v1alpha1.Stopped, v1alpha1.Parked, v1alpha1.Stale, v1alpha1.Expired, v1alpha1.Refused, v1alpha1.Rejected, v1alpha1.Superseded} {
		rem := c.recorded(t, d, f)
		now := metav1.NowMicro()
		rem.Status = v1alpha1.RemediationStatus{Phase: phase, Message: "it was", Ended: &now}
		c.save(t, rem)
		for i := range 4 {
			_, err := plan.Store{Dynamic: c.Dynamic()}.Decide(t.Context(), plan.NewApproval(rem, fmt.Sprint("person-", i), nil, v1alpha1.Approve))
			if (i >= 2) != errors.Is(err, plan.ErrRefused) {
				t.Errorf("decision %d: %v", i, err)
			}
			refused, of = refused+c.refuses(t, c.executor(), rem.Name, phase, "it was"), of+1
		}
		c.forget(t)
	}
	return refused, of
}

// earlier: the approval of an object that was deleted, and made again under its name.
func earlier(t *testing.T, c *cell, d diagnosis.Diagnosis, f diagnosis.Fix) (refused, of int) {
	for i := range 30 {
		rem := c.recorded(t, d, f)
		c.decide(t, rem, "alice", v1alpha1.Approve)
		if i%2 == 0 {
			c.decide(t, rem, "bob", v1alpha1.Approve)
		}
		if err := c.Dynamic().Resource(v1alpha1.Remediations).Delete(t.Context(), rem.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		again := c.recorded(t, d, f)
		if again.UID == rem.UID {
			t.Fatal("it is the same object")
		}
		x := c.executor()
		if _, err := x.Look(t.Context(), again.Name); err != nil { // clears them away
			t.Fatal(err)
		}
		if left, err := (plan.Store{Dynamic: c.Dynamic()}).Approvals(t.Context(), again.Name); err != nil || len(left) != 0 {
			t.Errorf("%d decisions on the earlier object are left, %v", len(left), err)
		}
		refused, of = refused+c.refuses(t, x, again.Name, v1alpha1.Pending, "0 of 1 persons have approved it"), of+1
		c.forget(t)
	}
	return refused, of
}
