package remediate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca"
)

// sameLimits holds a quota to the limits that the plan raises: what somebody else has
// set since must not be taken back.
func sameLimits(q *corev1.ResourceQuota, relied map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(relied)) {
		is, ok := q.Spec.Hard[corev1.ResourceName(name)]
		if !ok || is.String() != relied[name] {
			return fmt.Errorf("%w: resourcequota %s/%s has changed: %s is %q, the plan relies on %q", ErrStale, q.Namespace, q.Name, name, is.String(), relied[name])
		}
	}
	return nil
}

// quotaInForce waits until the quota's controller has taken the limits over: the API
// server holds pods to the status, and whoever tries before it is refused once more.
func (r *runner) quotaInForce(ctx context.Context, t rca.Target) error {
	return r.until(ctx, contention, func(ctx context.Context) (string, error) {
		q, err := r.Client.CoreV1().ResourceQuotas(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read resourcequota %s/%s: %w", t.Namespace, t.Name, err)
		}
		if !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) {
			return "its new limits are not in force yet", nil
		}
		return "", nil
	})
}
