package act

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/unpend/unpend/remediate/plan"
)

// sameLimits holds a quota to the limits that the plan raises: what somebody else has
// set since must not be taken back.
func sameLimits(q *corev1.ResourceQuota, relied map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(relied)) {
		is, ok := q.Spec.Hard[corev1.ResourceName(name)]
		if !ok || is.String() != relied[name] {
			return fmt.Errorf("%w: resourcequota %s/%s has changed: %s is %q, the plan relies on %q", plan.ErrStale, q.Namespace, q.Name, name, is.String(), relied[name])
		}
	}
	return nil
}

// quotaInForce says what is missing until the quota's controller has taken the
// limits over: the API server holds pods to the status, and a pod that is
// made before it is refused once more.
func quotaInForce(q *corev1.ResourceQuota) string {
	if !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) {
		return "its new limits are not in force yet"
	}
	return ""
}
