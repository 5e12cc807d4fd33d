package guard

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

func TestPersons(t *testing.T) {
	relay := func(r *v1alpha1.Remediation) *diagnosis.Action { return &r.Spec.Actions[0] }
	for _, c := range []struct {
		name     string
		one, two func(*v1alpha1.Remediation)
		why      string
	}{
		{"mode on", func(r *v1alpha1.Remediation) { relay(r).Relies["gpu0"] = "empty" },
			func(r *v1alpha1.Remediation) { relay(r).Relies["gpu0"] = "whole" },
			"it changes the MIG mode of GPU 0 of node gpu-1, as far as the plan tells"},
		{"mode of a GPU that stays as it is", func(r *v1alpha1.Remediation) { relay(r).Relies["gpu1"] = "whole" },
			func(r *v1alpha1.Remediation) { delete(relay(r).Relies, "gpu0") },
			"it changes the MIG mode of GPU 0 of node gpu-1, as far as the plan tells"},
		{"mode off by a layout", func(*v1alpha1.Remediation) {},
			func(r *v1alpha1.Remediation) { relay(r).Relayout.Layouts[0] = map[string]int{"2g.10gb": 0} },
			"it changes the MIG mode of GPU 0 of node gpu-1, as far as the plan tells"},
		{"mode off by an entry",
			func(r *v1alpha1.Remediation) {
				relay(r).Relies["gpu1"] = "whole"
				relay(r).Relayout.Entry = json.RawMessage(`[{"devices":[0],"mig-enabled":true},{"devices":[1],"mig-enabled":false}]`)
			},
			func(r *v1alpha1.Remediation) {
				relay(r).Relayout.Entry = json.RawMessage(`[{"devices":[0],"mig-enabled":true},{"devices":[1],"mig-enabled":false}]`)
			},
			"its config all-2g.10gb may switch MIG off on node gpu-1"},
		{"mode off by an entry for all",
			func(r *v1alpha1.Remediation) {
				relay(r).Relayout.Entry = json.RawMessage(`[{"devices":"all","mig-enabled":true}]`)
			},
			func(r *v1alpha1.Remediation) { relay(r).Relayout.Entry = json.RawMessage(`[{"devices":"all"}]`) },
			"its config all-2g.10gb may switch MIG off on node gpu-1"},
		{"mode by an entry that cannot be read",
			func(r *v1alpha1.Remediation) { relay(r).Relayout.Entry = json.RawMessage(`[]`) },
			func(r *v1alpha1.Remediation) { relay(r).Relayout.Entry = json.RawMessage(`"off"`) },
			"its config all-2g.10gb may switch MIG off on node gpu-1"},
		{"nodes", func(r *v1alpha1.Remediation) { r.Spec.Nodes = []string{"gpu-1", "gpu-1"} },
			func(r *v1alpha1.Remediation) { r.Spec.Nodes = []string{"gpu-2"} }, // and it writes to gpu-1
			"it changes 2 nodes, one person may change 1"},
		{"evictions", func(r *v1alpha1.Remediation) {
			evicting(r, 10)
			relay(r).Relayout.Victims = []diagnosis.Target{r.Spec.Actions[1].Target} // the same pod twice
		},
			func(r *v1alpha1.Remediation) {
				evicting(r, 10)
				relay(r).Relayout.Victims = []diagnosis.Target{{Kind: "Pod", Namespace: "ml", Name: "x", UID: "x"}}
			},
			"it stops 11 pods, one person may stop 10"},
		{"priority", func(r *v1alpha1.Remediation) { evicting(r, 1); r.Spec.VictimPriority, r.Spec.Priority = 5, 5 },
			func(r *v1alpha1.Remediation) { evicting(r, 1); r.Spec.VictimPriority, r.Spec.Priority = 0, -1 },
			"it stops a pod of priority 0 for pods of priority -1"},
		{"priority of nobody", func(r *v1alpha1.Remediation) { r.Spec.VictimPriority = 5 },
			func(r *v1alpha1.Remediation) { evicting(r, 11); r.Spec.VictimPriority = 5 },
			"it stops 11 pods, one person may stop 10; it stops a pod of priority 5 for pods of priority 0"},
	} {
		one, two := planFor(1, "gpu-1"), planFor(1, "gpu-1")
		c.one(one)
		c.two(two)
		if n, why := Defaults().Persons(one); n != 1 || why != "" {
			t.Errorf("%s: one may: got %d, %q", c.name, n, why)
		}
		if n, why := Defaults().Persons(two); n != 2 || why != c.why {
			t.Errorf("%s: got %d, %q; want 2, %q", c.name, n, why, c.why)
		}
		if n, why := (Limits{TwoPersons: TwoPersons{Nodes: 9, Evictions: 99}}).Persons(two); n != 1 || why != "" {
			t.Errorf("%s, allowed: got %d, %q", c.name, n, why)
		}
	}
}

func TestApproved(t *testing.T) {
	plan := planFor(1, "gpu-1")
	type approvals = []v1alpha1.Approval
	yes := func(who string, edit ...func(*v1alpha1.Approval)) v1alpha1.Approval {
		a := v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Name: plan.Name, CreationTimestamp: plan.CreationTimestamp},
			Spec: v1alpha1.ApprovalSpec{Plan: plan.Name, Remediation: string(plan.UID), Decision: v1alpha1.Approve, Approver: who}}
		for _, e := range edit {
			e(&a)
		}
		return a
	}
	second := func(a *v1alpha1.Approval) { a.Name += "-2" }
	at := func(when time.Time) func(*v1alpha1.Approval) {
		return func(a *v1alpha1.Approval) { a.CreationTimestamp = metav1.NewTime(when) }
	}
	no := func(a *v1alpha1.Approval) { a.Spec.Decision, a.Spec.Reason = v1alpha1.Reject, "not tonight" }
	otherUID := func(a *v1alpha1.Approval) { a.Spec.Remediation = "plan-0" }
	expires := plan.Spec.Expires.Time
	for i, c := range []struct {
		given   approvals
		persons int
		ok      bool
		by      []string
		why     string
	}{
		{nil, 1, false, nil, "0 of 1 persons have approved it"},
		{approvals{yes("bob")}, 1, true, []string{"bob"}, ""},
		{approvals{yes("ann")}, 1, true, []string{"ann"}, ""}, // who asked may approve where one is enough
		{approvals{yes("bob", second)}, 1, true, []string{"bob"}, ""},
		{approvals{yes("bob", func(a *v1alpha1.Approval) { a.Name += "-3" })}, 1, false, nil, "0 of 1 persons have approved it"},
		{approvals{yes("bob", func(a *v1alpha1.Approval) { a.Spec.Plan = hex(2) })}, 1, false, nil, "0 of 1 persons have approved it"},
		{approvals{yes("bob", otherUID)}, 1, false, nil, "0 of 1 persons have approved it; that of bob is for another object of that name"},
		{approvals{yes("")}, 1, false, nil, "0 of 1 persons have approved it; one does not say who gave it"},
		{approvals{yes("bob", func(a *v1alpha1.Approval) { a.Spec.Decision = "Maybe" })}, 1, false, nil, `0 of 1 persons have approved it; that of bob says "Maybe"`},
		{approvals{yes("bob", func(a *v1alpha1.Approval) { a.DeletionTimestamp = new(metav1.NewTime(noon)) })}, 1, false, nil, "0 of 1 persons have approved it; that of bob is being deleted"},
		{approvals{yes("bob", at(plan.CreationTimestamp.Add(-time.Second)))}, 1, false, nil, "0 of 1 persons have approved it; that of bob is older than the plan"},
		{approvals{yes("bob", at(expires.Add(-time.Second)))}, 1, true, []string{"bob"}, ""},
		{approvals{yes("bob", at(expires))}, 1, false, nil, "0 of 1 persons have approved it; that of bob was made once the plan had expired, at 2026-11-20T12:14:00Z"},
		{approvals{yes("bob")}, 2, false, []string{"bob"}, "1 of 2 persons have approved it"},
		{approvals{yes("bob"), yes("bob", second)}, 2, false, []string{"bob"}, "1 of 2 persons have approved it"},
		{approvals{yes("zoe"), yes("bob", second)}, 2, true, []string{"bob", "zoe"}, ""},
		{approvals{yes("ann"), yes("bob", second)}, 2, false, []string{"bob"}, "1 of 2 persons have approved it; ann asked for the plan, two others have to approve it"},
		{approvals{yes("bob"), yes("zoe", second, no)}, 1, false, nil, "zoe said no: not tonight"},
		{approvals{yes("zoe", no, func(a *v1alpha1.Approval) { a.Spec.Reason = "" })}, 1, false, nil, "zoe said no"},
		{approvals{yes("zoe", no), yes("bob", second)}, 1, false, nil, "zoe said no: not tonight"},
		{approvals{yes("zoe", no, at(expires.Add(time.Hour))), yes("bob", second)}, 1, false, nil, "zoe said no: not tonight"},
		{approvals{yes("zoe", no, otherUID), yes("bob", second)}, 1, true, []string{"bob"}, ""},
		{approvals{yes("bob")}, 0, true, []string{"bob"}, ""},
		{nil, 0, false, nil, "0 of 1 persons have approved it"},
	} {
		ok, by, why := Approved(plan, c.given, c.persons)
		if ok != c.ok || !reflect.DeepEqual(by, c.by) || why != c.why {
			t.Errorf("%d: got %t, %v, %q; want %t, %v, %q", i, ok, by, why, c.ok, c.by, c.why)
		}
	}
	bare := planFor(1, "gpu-1")
	bare.UID = ""
	if ok, _, _ := Approved(bare, approvals{yes("bob", func(a *v1alpha1.Approval) { a.Spec.Remediation = "" })}, 1); ok {
		t.Error("a plan without a uid was approved by an approval of nothing")
	}
}
