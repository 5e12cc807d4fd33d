package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// speaker is the account of a service that people decide by: it may act as those of the
// map, to create decisions and for nothing else.
const speaker = "speaker"

// known are the people of the map. grace is not one the account may act as, nor is
// staff a group that it may act with.
func known(t *testing.T) plan.Identities {
	t.Helper()
	m, err := plan.NewIdentities([]plan.Identity{
		{Slack: "U0ADA", PagerDuty: "PADA", User: "ada"},
		{Slack: "U0MIA", User: "mia", Groups: []string{"gpu-admins"}},
		{Slack: "U0VERA", User: "vera"},
		{Web: "rex@example.com", User: "rex"},
		{Slack: "U0EVE", User: "eve", Groups: []string{"developers"}},
		{Slack: "U0GRACE", User: "grace", Groups: []string{"gpu-admins"}},
		{PagerDuty: "PMIA", User: "mia"},
		{Web: "mia", User: "mia", Groups: []string{"gpu-admins", "staff"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func decider(t *testing.T, cp *controlplane.ControlPlane) plan.Decider {
	t.Helper()
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: speaker}
	_, err := cp.Client().CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: speaker}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err == nil {
		who := func(resource string, names ...string) rbacv1.PolicyRule {
			r := rule("authentication.k8s.io", []string{"impersonate:user-info"}, resource)
			r.ResourceNames = names
			return r
		}
		grant(t, cp, "", speaker, account, rule("unpend.dev", []string{"get"}, "remediations", "approvals"), rule("unpend.dev", []string{"impersonate-on:user-info:create"}, "approvals"),
			who("users", "ada", "mia", "vera", "rex", "eve"), who("groups", "gpu-admins", "developers"))
	}
	config := accountConfig(t, cp, namespace, speaker)
	config.UserAgent = speaker
	its := dynamic.NewForConfigOrDie(config)
	persons := func(context.Context, *v1alpha1.Remediation) (int, string, error) {
		return 2, "it changes a MIG mode", nil
	}
	return plan.Decider{Identities: known(t), Dynamic: its, Persons: persons, ActAs: func(user string, groups []string) (dynamic.Interface, error) {
		theirs := rest.CopyConfig(config)
		theirs.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return dynamic.NewForConfig(theirs)
	}}
}

// shown is a recorded plan, and what somebody says to it.
func shown(t *testing.T, cp *controlplane.ControlPlane, name string) plan.Word {
	t.Helper()
	rem := mustCreate(t, cp.Dynamic(), remediationsAPI, remediation(hashOf(name), "admin"))
	return plan.Word{Plan: rem.GetName(), Remediation: rem.GetUID(), Decision: v1alpha1.Approve}
}

// spokenFor: who decides by Slack, PagerDuty or the web page may do what RBAC allows the
// user that the map names, with the groups that it names; who is not in it is nobody, and
// for nobody not a single request is made.
func spokenFor(t *testing.T, cp *controlplane.ControlPlane, n *tally) {
	d := decider(t, cp)
	for i, c := range []struct {
		caller plan.Caller
		want   string
	}{
		{plan.Caller{Via: "slack", ID: "U0ADA"}, "ada [] by slack"},
		{plan.Caller{Via: "pagerduty", ID: "PADA"}, "ada [] by pagerduty"},
		{plan.Caller{Via: "slack", ID: "U0MIA"}, "mia [gpu-admins] by slack"}, // may by the group
		{plan.Caller{Via: "pagerduty", ID: "PMIA"}, "RBAC: mia cannot create approvals.unpend.dev"},
		{plan.Caller{Via: "slack", ID: "U0VERA"}, "RBAC: vera cannot create approvals.unpend.dev"},
		{plan.Caller{Via: "web", ID: "rex@example.com"}, "RBAC: rex cannot create approvals.unpend.dev"},
		{plan.Caller{Via: "slack", ID: "U0EVE"}, "RBAC: eve cannot create approvals.unpend.dev"},
		{plan.Caller{Via: "slack", ID: "U0GRACE"}, "RBAC: system:serviceaccount:unpend:speaker cannot impersonate:user-info users.authentication.k8s.io"},
		{plan.Caller{Via: "web", ID: "mia"}, "RBAC: system:serviceaccount:unpend:speaker cannot impersonate:user-info groups.authentication.k8s.io"},
	} {
		w := shown(t, cp, fmt.Sprint("s5 spoken for ", i))
		w.Caller = c.caller
		a, err := d.Decide(t.Context(), w)
		n.check(t, c.caller.String(), outcome(a, err), c.want)
		there := 0
		if c.want[0] != 'R' {
			there = 1
		}
		n.check(t, c.caller.String()+": there", fmt.Sprint(len(specs(t, cp.Dynamic(), w.Plan))), fmt.Sprint(there))
	}
	before := requests(t, cp)
	w := shown(t, cp, "s5 of nobody")
	for _, c := range []plan.Caller{{}, {Via: "slack"}, {Via: "slack", ID: "U0NOBODY"}, {Via: "slack", ID: "u0ada"}, {Via: "slack", ID: "PADA"}, {Via: "web", ID: "U0ADA"},
		{Via: "slack", ID: "ada"}, {Via: "web", ID: "ada@example.com"}, {Via: "kubectl", ID: "ada"}, {Via: "slack", ID: "U0ADA "}} {
		w.Caller = c
		a, err := d.Decide(t.Context(), w)
		n.check(t, fmt.Sprintf("nobody: %q", c), fmt.Sprint(a == nil, errors.Is(err, plan.ErrRefused)), "true true")
	}
	n.check(t, "requests for nobody", fmt.Sprint(requests(t, cp)-before), "0")
	n.check(t, "decisions of nobody", fmt.Sprint(len(specs(t, cp.Dynamic(), w.Plan))), "0")
}

// notTheirOwn: who asked for a plan that takes two others does not take the place of one
// of them, and may say no to it.
func notTheirOwn(t *testing.T, cp *controlplane.ControlPlane, n *tally) {
	d, ada := decider(t, cp), person{name: "ada"}.dynamic(t, cp)
	rem := mustCreate(t, ada, remediationsAPI, remediation(hashOf("s6 her own"), "ada"))
	w := plan.Word{Caller: plan.Caller{Via: "slack", ID: "U0ADA"}, Plan: rem.GetName(), Remediation: rem.GetUID(), Decision: v1alpha1.Approve}
	_, err := d.Decide(t.Context(), w)
	n.check(t, "her own, of two", fmt.Sprint(err), "refused: you have asked for this plan, and two others have to approve it (it changes a MIG mode)")
	n.same(t, "no decision", len(specs(t, cp.Dynamic(), w.Plan)), 0)
	unread := errors.New("no answer")
	d.Persons = func(context.Context, *v1alpha1.Remediation) (int, string, error) { return 0, "", unread }
	_, err = d.Decide(t.Context(), w)
	n.check(t, "nobody knows how many", fmt.Sprint(errors.Is(err, unread)), "true")
	n.same(t, "still none", len(specs(t, cp.Dynamic(), w.Plan)), 0)
	w.Decision = v1alpha1.Reject
	a, err := d.Decide(t.Context(), w)
	n.check(t, "her no", outcome(a, err), "ada [] by slack")
	d.Persons = func(context.Context, *v1alpha1.Remediation) (int, string, error) { return 1, "", nil }
	rem = mustCreate(t, ada, remediationsAPI, remediation(hashOf("s6 her own of one"), "ada"))
	w.Plan, w.Remediation, w.Decision = rem.GetName(), rem.GetUID(), v1alpha1.Approve
	a, err = d.Decide(t.Context(), w)
	n.check(t, "her own, of one", outcome(a, err), "ada [] by slack")
}

// outcome is the decision that was taken, or how it was refused.
func outcome(a *v1alpha1.Approval, err error) string {
	if errors.Is(err, plan.ErrRefused) && apierrors.IsForbidden(err) {
		return answer(err)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %v by %s", a.Spec.Approver, a.Spec.Groups, a.Spec.Via)
}

// requests counts what the account has asked of the API server.
func requests(t *testing.T, cp *controlplane.ControlPlane) int {
	t.Helper()
	n := 0
	for _, e := range cp.AuditEvents(t) {
		if e.UserAgent == speaker {
			n++
		}
	}
	return n
}

// heardOnce: a word that comes again, three times and from two places at the same time,
// is one decision; another word of the same person is refused, but for a no.
func heardOnce(t *testing.T, cp *controlplane.ControlPlane, n *tally) {
	d, w := decider(t, cp), shown(t, cp, "s6 again")
	var all sync.WaitGroup
	var mu sync.Mutex
	uids := map[string]int{}
	say := func(via, id string) {
		w := w
		w.Caller = plan.Caller{Via: via, ID: id}
		a, err := d.Decide(t.Context(), w)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			uids[err.Error()]++
			return
		}
		uids[string(a.UID)]++
	}
	for range 3 {
		all.Go(func() { say("slack", "U0ADA") })
		all.Go(func() { say("slack", "U0ADA") })
		all.Go(func() { say("pagerduty", "PADA") })
	}
	all.Wait()
	n.check(t, "nine times ada", fmt.Sprint(len(uids)), "1")
	n.same(t, "one decision", len(specs(t, cp.Dynamic(), w.Plan)), 1)
	say("slack", "U0MIA")
	say("slack", "U0MIA")
	n.check(t, "and mia", fmt.Sprint(len(uids), len(specs(t, cp.Dynamic(), w.Plan))), "2 2")

	gone := w
	gone.Caller, gone.Remediation = plan.Caller{Via: "slack", ID: "U0ADA"}, "made-again"
	_, err := d.Decide(t.Context(), gone)
	n.check(t, "to another object of that name", fmt.Sprint(errors.Is(err, plan.ErrStale)), "true")
	gone.Plan = hashOf("s6 never")
	_, err = d.Decide(t.Context(), gone)
	n.check(t, "to none", fmt.Sprint(errors.Is(err, plan.ErrStale)), "true")

	w.Caller, w.Decision, w.Reason = plan.Caller{Via: "pagerduty", ID: "PADA"}, v1alpha1.Reject, "the nightly job"
	for range 3 {
		a, err := d.Decide(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		n.check(t, "a no after it", fmt.Sprintf("%s %s %s", a.Name[len(w.Plan):], a.Spec.Via, a.Spec.Reason), "-no pagerduty the nightly job")
	}
	n.same(t, "three decisions", len(specs(t, cp.Dynamic(), w.Plan)), 3)
}
