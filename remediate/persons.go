package remediate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Persons is how many persons have to approve a plan by the guard-rails in a namespace,
// and why it is more than one: then none of them is who asked for it, and whose word
// would only take the place of another's. Guard-rails that may not be read are taken for
// the defaults; the executor goes by what they are.
func Persons(ctx context.Context, d Deps, namespace string, rem *v1alpha1.Remediation) (n int, why string, err error) {
	r, err := NewExecutor(ExecutorOptions{Deps: d, Namespace: namespace}).rails(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return 0, "", err
	}
	n, why = r.limits.Persons(rem)
	return n, why, nil
}
