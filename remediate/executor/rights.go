package executor

import (
	"cmp"
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// right is something that somebody has to be allowed.
type right = authorizationv1.ResourceAttributes

// lacks asks the API server, before anything is written, whether every approver may do
// what the plan does, and whether we may act as who it is carried out as; it says the
// first thing that one may not.
func (x *Executor) lacks(ctx context.Context, rem *v1alpha1.Remediation, approvals []v1alpha1.Approval) (string, error) {
	if x.ActAs == nil {
		return "", nil
	}
	for _, a := range approvals {
		for _, need := range act.Rights(rem) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: a.Spec.Approver,
				Groups: append(x.groupsOf(&a), "system:authenticated"), ResourceAttributes: &need}}
			got, err := x.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return "", fmt.Errorf("ask what %s may do: %w", a.Spec.Approver, err)
			}
			if !got.Status.Allowed {
				return fmt.Sprintf("%s may not %s", a.Spec.Approver, inWords(need)), nil
			}
		}
	}
	if lacks, err := x.firstLacking(ctx, act.OwnRights(rem)); err != nil || lacks != "" {
		return "the executor may not " + lacks, err
	}
	return x.lacksActing(ctx, rem, actor(rem.UID, approvals))
}

// lacksActing says what we lack to write pods and workloads as a person, of either kind of
// impersonation: that of Kubernetes 1.36, which names what is done, or the one before.
func (x *Executor) lacksActing(ctx context.Context, rem *v1alpha1.Remediation, as *v1alpha1.Approval) (string, error) {
	if as == nil {
		return "", nil
	}
	var whole, constrained []right
	for _, need := range act.Rights(rem) {
		if need.Verb == act.Repartition { // we write nodes ourselves
			continue
		}
		need.Verb = "impersonate-on:user-info:" + need.Verb
		constrained = append(constrained, need)
	}
	if len(constrained) == 0 {
		return "", nil
	}
	also := func(resource, name string) {
		whole = append(whole, right{Verb: "impersonate", Resource: resource, Name: name})
		constrained = append(constrained, right{Verb: "impersonate:user-info", Group: "authentication.k8s.io", Resource: resource, Name: name})
	}
	also("users", as.Spec.Approver)
	for _, g := range x.groupsOf(as) {
		also("groups", g)
	}
	if lacks, err := x.firstLacking(ctx, whole); err != nil || lacks == "" {
		return "", err
	}
	lacks, err := x.firstLacking(ctx, constrained)
	if err != nil || lacks == "" {
		return "", err
	}
	return fmt.Sprintf("the executor may not %s, so it cannot act as %s: the chart lists people in remediate.approvers, and kinds of fixes in remediate.kinds", lacks, as.Spec.Approver), nil
}

// lacks asks, before anything is written, whether who carries a plan out here may do all
// that it does, and put it on record. plan.ErrRefused: they may not.
func (d Deps) lacks(ctx context.Context, rem *v1alpha1.Remediation) error {
	needs := act.OwnRights(rem)
	for _, need := range act.Rights(rem) {
		if need.Verb != act.Repartition {
			needs = append(needs, need)
		}
	}
	if d.Requester != "" {
		group := v1alpha1.GroupVersion.Group
		needs = append(needs, right{Verb: "create", Group: group, Resource: "remediations"}, right{Verb: "update", Group: group, Resource: "remediations", Subresource: "status"},
			right{Verb: "get", Group: group, Resource: "approvals"}, right{Verb: "create", Group: group, Resource: "approvals"})
	}
	lacks, err := d.firstLacking(ctx, needs)
	if err == nil && lacks != "" {
		err = fmt.Errorf("%w: nothing was written: %s may not %s", plan.ErrRefused, cmp.Or(d.Requester, "this user"), lacks)
	}
	return err
}

// firstLacking says the first thing that we may not do ourselves; empty: none.
func (d Deps) firstLacking(ctx context.Context, needs []right) (string, error) {
	for _, need := range needs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &need}}
		got, err := d.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("ask what we may do: %w", err)
		}
		if !got.Status.Allowed {
			return inWords(need), nil
		}
	}
	return "", nil
}

func inWords(a authorizationv1.ResourceAttributes) string {
	what := a.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	if a.Name != "" {
		what += " " + a.Name
	}
	if a.Namespace != "" {
		what += " in namespace " + a.Namespace
	}
	return a.Verb + " " + what
}
