package executor

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// What people give the executor that it cannot carry out: each is answered by a
// sentence that says what is wrong, and nothing is written.
func TestBadInputIsAnsweredInASentence(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(*testing.T, *cell, *v1alpha1.Remediation)
		phase v1alpha1.Phase
		says  string
	}{
		{"an approval by somebody who may not repartition", func(t *testing.T, c *cell, rem *v1alpha1.Remediation) {
			c.impersonates()
			c.decide(t, rem, "mallory", v1alpha1.Approve)
		}, v1alpha1.Refused, "mallory may not repartition nodes NODE"},
		{"an approval by somebody who may not evict", func(t *testing.T, c *cell, rem *v1alpha1.Remediation) {
			c.impersonates()
			c.mayRepartition(t, "carol")
			c.decide(t, rem, "carol", v1alpha1.Approve)
		}, v1alpha1.Refused, "carol may not create pods/eviction in namespace NS"},
		{"the node is gone", func(t *testing.T, c *cell, rem *v1alpha1.Remediation) {
			c.decide(t, rem, "alice", v1alpha1.Approve)
			if err := c.Client().CoreV1().Nodes().Delete(t.Context(), rem.Spec.Nodes[0], metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, v1alpha1.Stale, "node NODE is gone"},
		{"the approver asked for it, and it takes two", func(t *testing.T, c *cell, rem *v1alpha1.Remediation) {
			c.limits(t, "twoPersons: {evictions: 2}")
			c.decide(t, rem, "somebody", v1alpha1.Approve)
		}, v1alpha1.Pending, "0 of 2 persons have approved it; somebody asked for the plan, two others have to approve it (two persons: it stops 3 pods, one person may stop 2)"},
		{"the same person twice, and it takes two", func(t *testing.T, c *cell, rem *v1alpha1.Remediation) {
			c.limits(t, "twoPersons: {evictions: 2}")
			c.decide(t, rem, "alice", v1alpha1.Approve)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			second := plan.NewApproval(rem, "alice", nil, v1alpha1.Approve)
			second.Name += "-2" // by hand: Decide would not
			if _, err := c.Dynamic().Resource(v1alpha1.Approvals).Create(t.Context(), object(t, second), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}, v1alpha1.Pending, "1 of 2 persons have approved it"},
		{"a limit that cannot be read", func(t *testing.T, c *cell, rem *v1alpha1.Remediation) {
			c.limits(t, "nodesInFlight: many")
			c.decide(t, rem, "alice", v1alpha1.Approve)
		}, v1alpha1.Pending, guard.ConfigMap + ": read limits.yaml: nodesInFlight is many: it must be a whole number from 1 to 1000000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			node, d, f, holders := repartition(t, c)
			rem := c.recorded(t, d, f)
			tc.spoil(t, c, rem)
			again, err := c.look(t, c.executor(), rem.Name)
			rem = c.read(t, rem.Name)
			if err != nil || tc.phase == v1alpha1.Pending && (again <= 0 || again > holdBack) { // a person may mend it
				t.Errorf("look: %v, again in %s", err, again)
			}
			ended(t, rem, tc.phase, strings.NewReplacer("NODE", node, "NS", c.ns).Replace(tc.says))
			c.wrote(t, nil)
			if tc.name != "the node is gone" {
				c.untouched(t, holders...)
			}
		})
	}
}

// A plan that takes two persons is carried out once two others than who asked for it
// have approved it; pods are evicted as the first of them.
func TestTwoPersons(t *testing.T) {
	c := newCell(t)
	c.impersonates()
	_, d, f, _ := repartition(t, c)
	c.limits(t, "twoPersons: {evictions: 2}")
	rem := c.recorded(t, d, f)
	for _, who := range []string{"carol", "dave"} {
		c.mayRepartition(t, who)
		c.mayEvict(t, who)
		c.decide(t, rem, who, v1alpha1.Approve)
	}
	rem = c.carriedOut(t, rem.Name, c.one())
	ended(t, rem, v1alpha1.Succeeded)
	if fmt.Sprint(rem.Status.ApprovedBy) != "[carol dave]" || rem.Status.Evicted != 3 {
		t.Errorf("%+v", rem.Status)
	}
	evicted := 0
	for _, e := range c.Impersonations(t) {
		if e.ObjectRef.Namespace == c.ns && e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
			if evicted++; e.As.Username != "carol" {
				t.Errorf("evicted as %s", e.As.Username)
			}
		}
	}
	if evicted != 3 {
		t.Errorf("%d evicted as the approver, want 3", evicted)
	}
}

// The plan in the object is what was approved: the API server lets nobody edit it, and
// an object whose actions are others than its name says is refused.
func TestEditedPlan(t *testing.T) {
	c := newCell(t)
	_, d, f, holders := repartition(t, c)
	rem := c.recorded(t, d, f)
	_, err := c.Dynamic().Resource(v1alpha1.Remediations).Patch(t.Context(), rem.Name, types.MergePatchType, []byte(`{"spec":{"actions":[{"verb":"evict","target":{"kind":"Pod","name":"x","uid":"y"}}]}}`), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "a plan does not change: make another") {
		t.Error(err)
	}
	forged := plan.Propose(plan.Found{State: c.state(t), Diagnosis: d, Fix: f}, "somebody", time.Now())
	forged.Name = plan.Name(v1alpha1.RemediationSpec{})
	if forged, err = (plan.Store{Dynamic: c.Dynamic()}).Record(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	c.decide(t, forged, "alice", v1alpha1.Approve)
	ended(t, c.carriedOut(t, forged.Name, c.one()), v1alpha1.Refused, "spec: the hash of its incident, since and actions is", "somebody has edited them")
	c.wrote(t, nil)
	c.untouched(t, holders...)
}

// impersonates has the executor act as the approver.
func (c *cell) impersonates() {
	c.actAs = func(user string, groups []string) (kubernetes.Interface, error) {
		config := c.Config()
		config.UserAgent, config.Impersonate = c.agent, rest.ImpersonationConfig{UserName: user, Groups: groups}
		return kubernetes.NewForConfig(config)
	}
}

func (c *cell) limits(t *testing.T, text string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: guard.ConfigMap}, Data: map[string]string{guard.LimitsKey: text}}
	if _, err := c.Client().CoreV1().ConfigMaps(c.ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cell) mayRepartition(t *testing.T, user string) {
	t.Helper()
	c.may(t, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{act.Repartition}})
}

func (c *cell) mayEvict(t *testing.T, user string) {
	t.Helper()
	c.may(t, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
}

// may gives a user a right for as long as the test lasts.
func (c *cell) may(t *testing.T, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{GenerateName: "test-"}
	role, err := c.Client().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	meta = metav1.ObjectMeta{Name: role.Name}
	if _, err := c.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 10*time.Second, user+" may", func() (bool, string) { return c.allowed(t, user, rule), "" })
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		err := c.Client().RbacV1().ClusterRoleBindings().Delete(ctx, role.Name, metav1.DeleteOptions{})
		if err := cmp.Or(err, c.Client().RbacV1().ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
}

// allowed asks the authorizer, which follows roles by a watch.
func (c *cell) allowed(t *testing.T, user string, rule rbacv1.PolicyRule) bool {
	t.Helper()
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	got, err := c.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: rule.Verbs[0], Resource: resource, Subresource: sub}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Allowed
}
