package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Persons is how many persons have to approve a plan by the guard-rails in a namespace,
// and why it is more than one: then none of them is the person who asked for it, whose word
// would only take the place of another's. Guard-rails that may not be read are taken for
// the defaults; the executor goes by what they are.
func Persons(ctx context.Context, d Deps, namespace string, rem *v1alpha1.Remediation) (n int, why string, err error) {
	r, err := railsOf(d, namespace).read(ctx)
	if _, ok := errors.AsType[*unclear](err); ok {
		return 0, "", fmt.Errorf("%w: %w", plan.ErrRefused, err)
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return 0, "", err
	}
	n, why = r.limits.Persons(rem)
	return n, why, nil
}

// Rested is plan.ErrRefused for a plan that was begun, came to no good end, and whose nodes
// still rest: recorded again it would take the place of the one that the guard-rails
// count, and a plan that fails again and again would never open the breaker.
func Rested(ctx context.Context, d Deps, namespace, name string) error {
	rem, err := plan.Store{Dynamic: d.Dynamic}.Get(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && (!rem.Status.Phase.Ended() || len(rem.Status.Journal) == 0 || rem.Status.Ended == nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read plan %s: %w", name, err)
	}
	r, err := railsOf(d, namespace).read(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	until := rem.Status.Ended.Add(r.limits.CoolDown)
	if !d.Now().Before(until) {
		return nil
	}
	return fmt.Errorf("%w: this plan was carried out and ended as %s: %s; it may be tried again from %s on (coolDown in ConfigMap %s)", plan.ErrRefused,
		rem.Status.Phase, rem.Status.Message, until.UTC().Format(time.RFC3339), guard.ConfigMap)
}
