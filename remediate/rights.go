package remediate

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Repartition is the virtual verb on nodes that an approver needs for a plan that
// changes a node: people rightly have no right to patch nodes.
const Repartition = "repartition"

// needs are the rights that the approver of a plan has to have: those that its
// writes take, so that a plan does not fail in the middle for want of one, and for a
// node, which the executor writes itself, the virtual verb.
func needs(rem *v1alpha1.Remediation) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	seen := map[authorizationv1.ResourceAttributes]bool{}
	add := func(verb, group, resource, sub string, t diagnosis.Target) {
		a := authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: sub, Namespace: t.Namespace}
		if resource == "nodes" {
			a.Name = t.Name
		}
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	for _, a := range rem.Spec.Actions {
		switch a.Verb {
		case diagnosis.VerbEvict:
			add("create", "", "pods", "eviction", a.Target)
		case diagnosis.VerbPatch:
			group, resource := resourceOfKind(a.Target.Kind)
			add("patch", group, resource, "", a.Target)
		case diagnosis.VerbRecreate:
			group, resource := resourceOfKind(a.Target.Kind)
			add("delete", group, resource, "", a.Target)
			add("create", group, resource, "", a.Target)
			add("create", "batch", "jobs", "", a.Target) // the copy that is kept
			add("delete", "batch", "jobs", "", a.Target)
		default:
			add(Repartition, "", "nodes", "", a.Target)
		}
		if a.Relayout != nil {
			for _, v := range a.Relayout.Victims {
				add("create", "", "pods", "eviction", v)
			}
		}
	}
	return out
}

func resourceOfKind(kind string) (group, resource string) {
	resource = strings.ToLower(kind) + "s"
	switch kind {
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet":
		group = "apps"
	case "Job":
		group = "batch"
	}
	return group, resource
}

// lacks asks the API server whether every approver may do what the plan does; it
// says the first thing that one may not.
func (x *Executor) lacks(ctx context.Context, rem *v1alpha1.Remediation, approvals []v1alpha1.Approval) (string, error) {
	if x.ActAs == nil {
		return "", nil
	}
	for _, a := range approvals {
		for _, need := range needs(rem) {
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
