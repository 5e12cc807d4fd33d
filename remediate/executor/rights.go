package executor

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// lacks asks the API server whether every approver may do what the plan does; it
// says the first thing that one may not.
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
