package deploy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/unpend/unpend/testdata/controlplane"
)

const ownWord = "RBAC: %s cannot %s %s.unpend.dev"

// S5: six users, five actions. Who may is what RBAC says, and nobody speaks for
// somebody else or changes what was said, whatever RBAC says.
func whoMayDecide(t *testing.T, cp *controlplane.ControlPlane) tally {
	grant(t, cp, "", "asks-only", toUser("rex"), rule("unpend.dev", []string{"get", "create"}, "remediations"))
	grant(t, cp, "", "looks-on", toUser("vera"), rule("unpend.dev", []string{"get", "list", "watch"}, "remediations", "approvals", "nodegeometries"))
	verbs := [5]struct{ verb, resource string }{{"create", "remediations"}, {"create", "approvals"}, {"create", "approvals"}, {"update", "approvals"}, {"delete", "approvals"}}
	yes, forged, fixed, no := "yes", "policy", "policy", "RBAC"
	truth := []struct {
		person
		want [5]string // plan, approve, approve in another's name, change, delete
	}{
		{person{"ada", nil}, [5]string{yes, yes, forged, no, no}},                             // approver by name
		{person{"mia", []string{"gpu-admins"}}, [5]string{yes, yes, forged, no, no}},          // approver by group
		{person{"vera", nil}, [5]string{no, no, no, no, no}},                                  // looks on
		{person{"rex", nil}, [5]string{yes, no, no, no, no}},                                  // may ask
		{person{"eve", []string{"developers"}}, [5]string{no, no, no, no, no}},                // anybody
		{person{"root", []string{"system:masters"}}, [5]string{yes, yes, forged, fixed, yes}}, // everything
	}
	var n tally
	admin := cp.Dynamic()
	for _, u := range truth {
		name := hashOf("s5 " + u.name)
		there := hashOf("s5 there " + u.name)
		mustCreate(t, admin, approvalsAPI, approval(there, "admin"))
		waitForRights(t, cp, u.person, verbs[0].verb, verbs[0].resource, u.want[0] == yes)
		waitForRights(t, cp, u.person, verbs[1].verb, verbs[1].resource, u.want[1] == yes)
		for i, try := range u.tries(t, cp, name, there) {
			got := answer(try())
			n.check(t, fmt.Sprintf("%s, %s %s (%d)", u.name, verbs[i].verb, verbs[i].resource, i+1), kind(got), u.want[i])
			if may := mayBy(t, cp, u.person, verbs[i].verb, verbs[i].resource); may != (u.want[i] != no) {
				t.Errorf("%s, %d: RBAC allows it: %t, and the answer was %s", u.name, i+1, may, got)
			}
		}
		u.wantEffects(t, admin, name, there, u.want)
	}
	spokenFor(t, cp, &n)
	return n
}

// tries are the five actions, as that person.
func (p person) tries(t *testing.T, cp *controlplane.ControlPlane, name, there string) [5]func() error {
	t.Helper()
	client := p.dynamic(t, cp)
	approvals := client.Resource(approvalsAPI)
	create := func(r schema.GroupVersionResource, o *unstructured.Unstructured) func() error {
		return func() error {
			_, err := client.Resource(r).Create(t.Context(), o, metav1.CreateOptions{})
			return err
		}
	}
	return [5]func() error{
		create(remediationsAPI, remediation(name, p.name)),
		create(approvalsAPI, approval(name, p.name, p.groups...)),
		create(approvalsAPI, approval(name+"-2", "grace")),
		func() error {
			o, err := cp.Dynamic().Resource(approvalsAPI).Get(t.Context(), there, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			o.SetAnnotations(map[string]string{"a": "b"})
			_, err = approvals.Update(t.Context(), o, metav1.UpdateOptions{})
			return err
		},
		func() error { return approvals.Delete(t.Context(), there, metav1.DeleteOptions{}) },
	}
}

// wantEffects holds what is there afterwards to the answers.
func (p person) wantEffects(t *testing.T, admin dynamic.Interface, name, there string, want [5]string) {
	t.Helper()
	for i, c := range []struct {
		resource schema.GroupVersionResource
		name     string
		thereIf  bool
	}{{remediationsAPI, name, want[0] == "yes"}, {approvalsAPI, name, want[1] == "yes"}, {approvalsAPI, name + "-2", want[2] == "yes"}, {approvalsAPI, there, want[4] != "yes"}} {
		o, err := admin.Resource(c.resource).Get(t.Context(), c.name, metav1.GetOptions{})
		if got := err == nil; got != c.thereIf || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s, effect %d: there: %t, %v", p.name, i+1, got, err)
		}
		if err == nil && len(o.GetAnnotations()) > 0 {
			t.Errorf("%s: changed: %v", p.name, o.GetAnnotations())
		}
	}
}

// mayBy is what RBAC says, asked by somebody else, as the executor asks.
func mayBy(t *testing.T, cp *controlplane.ControlPlane, p person, verb, resource string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: p.name, Groups: p.groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "unpend.dev", Verb: verb, Resource: resource}}}
	got, err := cp.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Allowed
}

func waitForRights(t *testing.T, cp *controlplane.ControlPlane, p person, verb, resource string, may bool) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "rights of "+p.name, func() (bool, string) {
		return mayBy(t, cp, p, verb, resource) == may, "not yet"
	})
}

func mustCreate(t *testing.T, client dynamic.Interface, r schema.GroupVersionResource, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	got, err := client.Resource(r).Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// S6, as far as the API server answers for it: an approval is its creator's own and
// is one for each name. That two of them are two people is the executor's to check.
func approvalsAreTrue(t *testing.T, cp *controlplane.ControlPlane) tally {
	ada, mia := person{"ada", []string{"gpu-admins", "staff"}}, person{"mia", []string{"gpu-admins"}}
	adas, mias, root := ada.dynamic(t, cp), mia.dynamic(t, cp), cp.Dynamic()
	its := dynamic.NewForConfigOrDie(asExecutor(t, cp))
	a, b := hashOf("s6 a"), hashOf("s6 b")
	finalizer, owned := approval(b, "ada"), approval(b, "ada")
	finalizer.SetFinalizers([]string{"example.com/mine"})
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"}})
	other := approval(b, "ada")
	other.Object["spec"].(values)["plan"] = a
	mine := remediation(a, "ada")
	mine.Object["status"] = values{"phase": "Succeeded", "approvedBy": []any{"mia"}}
	kept := remediation(b, "ada")
	kept.SetFinalizers([]string{"example.com/mine"})
	third := approval(b, "ada")
	third.SetName(a + "-3")
	yesAsNo, no := approval(a, "ada"), approval(a, "ada")
	yesAsNo.SetName(a + "-no")
	no.SetName(a + "-no")
	no.Object["spec"].(values)["decision"] = "Reject"
	spoken := func(who string) string { return "policy: spec.approver is " + who }
	create := func(c dynamic.Interface, r schema.GroupVersionResource, o *unstructured.Unstructured) error {
		_, err := c.Resource(r).Create(t.Context(), o, metav1.CreateOptions{})
		return err
	}
	var n tally
	for _, c := range []struct {
		what   string
		client dynamic.Interface
		r      schema.GroupVersionResource
		o      *unstructured.Unstructured
		want   string
	}{
		{"in another's name", adas, approvalsAPI, approval(a, "mia"), spoken("mia, and the caller is ada")},
		{"in a name that is nearly one's own", adas, approvalsAPI, approval(a, "Ada"), spoken("Ada, and the caller is ada")},
		{"in an approver's name, by an admin", root, approvalsAPI, approval(a, "ada"), spoken("ada, and the caller is admin")},
		{"with a group that is not one's own", mias, approvalsAPI, approval(a, "mia", "gpu-admins", "staff"), "policy: mia is not in every one of spec.groups"},
		{"with the masters", adas, approvalsAPI, approval(a, "ada", "system:masters"), "policy: ada is not in every one of spec.groups"},
		{"with finalizers", adas, approvalsAPI, finalizer, "policy: an approval has neither finalizers nor owners"},
		{"with an owner", adas, approvalsAPI, owned, "policy: an approval has neither finalizers nor owners"},
		{"of another plan than its name's", adas, approvalsAPI, other, "invalid"},
		{"a third one", adas, approvalsAPI, third, "invalid"},
		{"by the executor, as itself", its, approvalsAPI, approval(a, "system:serviceaccount:unpend:unpend-executor"), fmt.Sprintf(ownWord, "system:serviceaccount:unpend:unpend-executor", "create", "approvals")},
		{"by the executor, as an approver", actingAs(t, cp, "ada"), approvalsAPI, approval(a, "ada"), fmt.Sprintf(ownWord, "system:serviceaccount:unpend:unpend-executor", "impersonate-on:user-info:create", "approvals")},
		{"the first", adas, approvalsAPI, approval(a, "ada", "gpu-admins"), "yes"},
		{"the second click", adas, approvalsAPI, approval(a, "ada", "gpu-admins"), "there already"},
		{"another's, in the same second", mias, approvalsAPI, approval(a, "mia"), "there already"},
		{"the second person's", mias, approvalsAPI, approval(a+"-2", "mia", "gpu-admins"), "yes"},
		{"a yes under the name of a no", adas, approvalsAPI, yesAsNo, "invalid"},
		{"a no after the yes", adas, approvalsAPI, no, "yes"},
		{"a plan in another's name", adas, remediationsAPI, remediation(a, "mia"), "policy: spec.requester is mia, and the caller is ada"},
		{"a plan in a person's name, by the executor", its, remediationsAPI, remediation(a, "ada"), "policy: spec.requester is ada, and the caller is system:serviceaccount:unpend:unpend-executor"},
		{"a plan that stays", adas, remediationsAPI, kept, "policy: a plan is recorded without finalizers and owners"},
		{"a plan that says it was approved", adas, remediationsAPI, mine, "yes"},
	} {
		got := answer(create(c.client, c.r, c.o))
		n.check(t, c.what, strings.TrimSuffix(got, "."), c.want)
	}
	asMadeBy(t, &n, root, a)
	unchanged(t, &n, root, a)
	leaves(t, &n, root, a)
	clearedAway(t, &n, cp)
	heardOnce(t, cp, &n)
	notTheirOwn(t, cp, &n)
	return n
}

// asMadeBy: what was refused is not there, what was taken is as it was sent, and a
// plan's word about its own status was not.
func asMadeBy(t *testing.T, n *tally, root dynamic.Interface, a string) {
	t.Helper()
	n.same(t, "approvals", specs(t, root, a, a+"-2"), map[string]any{a: approval(a, "ada", "gpu-admins").Object["spec"], a + "-2": approval(a+"-2", "mia", "gpu-admins").Object["spec"], a + "-no": said(a)})
	made, err := root.Resource(remediationsAPI).Get(t.Context(), a, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.same(t, "status of the plan that says it was approved", made.Object["status"], nil)
}

// said is the no of ada.
func said(name string) map[string]any {
	spec := approval(name, "ada").Object["spec"].(values)
	spec["decision"] = "Reject"
	return spec
}

// specs are the approvals of a plan.
func specs(t *testing.T, client dynamic.Interface, names ...string) map[string]any {
	t.Helper()
	list, err := client.Resource(approvalsAPI).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, o := range list.Items {
		if strings.HasPrefix(o.GetName(), names[0]) {
			out[o.GetName()] = o.Object["spec"]
		}
	}
	return out
}

// unchanged tries to change what was said, with all rights.
func unchanged(t *testing.T, n *tally, root dynamic.Interface, name string) {
	t.Helper()
	for what, c := range map[string]struct{ patch, want string }{
		"the decision":   {`{"spec":{"decision":"Reject"}}`, "invalid policy: an approval does not change"},
		"the approver":   {`{"spec":{"approver":"mia"}}`, "invalid policy: an approval does not change"},
		"an annotation":  {`{"metadata":{"annotations":{"a":"b"}}}`, "policy: an approval does not change"},
		"its finalizers": {`{"metadata":{"finalizers":["example.com/mine"]}}`, "policy: an approval does not change"},
	} {
		_, err := root.Resource(approvalsAPI).Patch(t.Context(), name, types.MergePatchType, []byte(c.patch), metav1.PatchOptions{})
		if got := answer(err); !strings.Contains(c.want, got) {
			n.check(t, what, got, c.want)
		} else {
			n.held++
		}
	}
}

// leaves: one that waits for a finalizer to go is not kept by the policy.
func leaves(t *testing.T, n *tally, root dynamic.Interface, name string) {
	t.Helper()
	foreground := metav1.DeletePropagationForeground
	n.check(t, "deleted in the foreground", answer(root.Resource(approvalsAPI).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &foreground})), "yes")
	_, err := root.Resource(approvalsAPI).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // the garbage collector may have been here
		t.Error(err)
	}
	_, err = root.Resource(approvalsAPI).Get(t.Context(), name, metav1.GetOptions{})
	n.check(t, "it is gone", fmt.Sprint(apierrors.IsNotFound(err)), "true")
}

// clearedAway: what is under way, or counted by the guard-rails, is not deleted by
// people; everything else is, by those who may.
func clearedAway(t *testing.T, n *tally, cp *controlplane.ControlPlane) {
	t.Helper()
	its, adas := dynamic.NewForConfigOrDie(asExecutor(t, cp)), person{"ada", nil}.dynamic(t, cp)
	for phase, want := range map[string]string{
		"": "yes", "Pending": "yes", "Failed": "yes", "Stopped": "yes", "Stale": "yes", "Expired": "yes", "Refused": "yes", "Rejected": "yes", "Superseded": "yes",
		"Queued": "policy", "Running": "policy", "Undoing": "policy", "Succeeded": "policy", "Parked": "policy",
	} {
		name := hashOf("phase " + phase)
		mustCreate(t, adas, remediationsAPI, remediation(name, "ada"))
		status := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
		_, err := adas.Resource(remediationsAPI).Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
		n.check(t, "an approver writes the status", kind(answer(err)), "RBAC")
		if phase != "" {
			if _, err := its.Resource(remediationsAPI).Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}
		got := answer(adas.Resource(remediationsAPI).Delete(t.Context(), name, metav1.DeleteOptions{}))
		n.check(t, "an approver deletes one that is "+phase, kind(got), want)
		if want != "yes" {
			n.check(t, "an admin deletes one that is "+phase, answer(cp.Dynamic().Resource(remediationsAPI).Delete(t.Context(), name, metav1.DeleteOptions{})), "policy: it is "+phase+": only the executor may delete it")
			n.check(t, "the executor deletes one that is "+phase, answer(its.Resource(remediationsAPI).Delete(t.Context(), name, metav1.DeleteOptions{})), "yes")
		}
	}
}

// actingAs is the executor with an approver's name.
func actingAs(t *testing.T, cp *controlplane.ControlPlane, user string) dynamic.Interface {
	t.Helper()
	config := asExecutor(t, cp)
	config.Impersonate.UserName = user
	return dynamic.NewForConfigOrDie(config)
}
