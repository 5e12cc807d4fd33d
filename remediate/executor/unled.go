package executor

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Unled is d for a plan that its approver carries out because no executor leads in a
// namespace: the kill switch that is kept there is honoured between any two writes. It
// is plan.ErrRefused while that, the breaker or a freeze window stops all plans, and when
// whether they do cannot be told; where unpend is not installed, nothing does.
func Unled(ctx context.Context, d Deps, namespace string) (Deps, error) {
	g := railsOf(d, namespace)
	r, err := g.read(ctx)
	if apierrors.IsForbidden(err) && !Installed(d) {
		return d, nil
	}
	if err != nil {
		return d, fmt.Errorf("%w: whether all plans are stopped cannot be told: %w", plan.ErrRefused, err)
	}
	why := r.limits.Stopped(guard.View{Now: d.Now(), Paused: r.paused, GuardsGone: r.gone, Breaker: r.breaker, Namespace: namespace})
	if why != "" {
		return d, fmt.Errorf("%w: %s", plan.ErrRefused, why)
	}
	d.Hold = g.halted
	return d, nil
}

// Installed says whether the cluster has unpend's kinds; when that cannot be told, it
// has.
func Installed(d Deps) bool {
	_, err := d.Client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	return !apierrors.IsNotFound(err)
}
