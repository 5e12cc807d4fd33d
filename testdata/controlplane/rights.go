package controlplane

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Allow gives a user the right to get, list and watch resources of all
// namespaces, named as RBAC messages name them: "pods",
// "nodegeometries.unpend.dev", and waits until the API server knows. It is
// taken back when the test ends.
func (c *ControlPlane) Allow(tb testing.TB, user string, resources ...string) {
	tb.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	for _, r := range resources {
		gr := schema.ParseGroupResource(r)
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: []string{"get", "list", "watch"}})
	}
	roles, bindings := c.Client().RbacV1().ClusterRoles(), c.Client().RbacV1().ClusterRoleBindings()
	made, err := roles.Create(tb.Context(), role, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	cleanup(tb, func(ctx context.Context) error { return roles.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: made.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: made.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := bindings.Create(tb.Context(), binding, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	cleanup(tb, func(ctx context.Context) error { return bindings.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	for _, r := range resources {
		c.waitAllowed(tb, user, schema.ParseGroupResource(r))
	}
}

// waitAllowed waits for the authorizer, which follows roles and bindings by a watch.
func (c *ControlPlane) waitAllowed(tb testing.TB, user string, gr schema.GroupResource) {
	tb.Helper()
	reviews := c.Client().AuthorizationV1().SubjectAccessReviews()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "watch", Group: gr.Group, Resource: gr.Resource}}}
	Eventually(tb, 10*time.Second, user+" may watch "+gr.String(), func() (bool, string) {
		got, err := reviews.Create(tb.Context(), review, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return got.Status.Allowed, got.Status.Reason
	})
}
