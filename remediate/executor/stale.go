package executor

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// becameStale ends a plan that is no longer the plan: it says what has changed, and
// records the plan that takes its place, if there is one.
func (x *Executor) becameStale(ctx context.Context, now plan.Found, rem *v1alpha1.Remediation) error {
	w := rem.Spec.Workload
	says := fmt.Errorf("%w: what %s %s/%s needs is another fix now", plan.ErrStale, w.Kind, w.Namespace, w.Name)
	if what := act.Changed(now.State, rem); what != nil {
		says = what
	} else if now.Fix.Plan != "" {
		says = fmt.Errorf("%w: %s", plan.ErrStale, now.Fix.Proof.Why)
	}
	if now.Diagnosis.Incident == "" {
		says = fmt.Errorf("%w; no pod of %s %s/%s waits as it did", says, w.Kind, w.Namespace, w.Name)
	}
	if next, ok := successor(now.Diagnosis, rem); ok {
		if what := changedConfig(rem.Spec.Actions, next.Actions); what != nil && act.Changed(now.State, rem) == nil {
			says = what
		}
		if _, err := x.store.Record(ctx, plan.Propose(plan.Found{State: now.State, Diagnosis: now.Diagnosis, Fix: next}, x.Self, x.Now())); err != nil {
			return fmt.Errorf("record the plan that takes the place of %s: %w", rem.Name, err)
		}
		says = fmt.Errorf("%w; its new plan %s waits for approval: fix %d, %q", says, next.Plan, next.ID, next.Title)
	}
	return x.finish(ctx, rem, v1alpha1.Stale, says.Error())
}

// successor is the fix of the same kinds, or else one of the same kind that takes more or
// less besides, as it is now.
func successor(d diagnosis.Diagnosis, old *v1alpha1.Remediation) (diagnosis.Fix, bool) {
	for _, same := range []func(diagnosis.Fix) bool{
		func(f diagnosis.Fix) bool { return slices.Equal(f.Kinds, old.Spec.Kinds) },
		func(f diagnosis.Fix) bool { return f.Kind == old.Spec.Kind },
	} {
		for _, f := range d.Fixes {
			if same(f) && f.Plan != old.Name && permitted(f) == nil {
				return f, true
			}
		}
	}
	return diagnosis.Fix{}, false
}

// changedConfig says that a MIG config makes another layout now: its name is all that the
// plan has of it.
func changedConfig(old, now []diagnosis.Action) error {
	for _, a := range old {
		for _, b := range now {
			if a.Relayout != nil && b.Relayout != nil && a.Target == b.Target && a.Relayout.Config == b.Relayout.Config && !reflect.DeepEqual(a.Relayout.Layouts, b.Relayout.Layouts) {
				return fmt.Errorf("%w: MIG config %s makes another layout of node %s now", plan.ErrStale, a.Relayout.Config, a.Target.Name)
			}
		}
	}
	return nil
}
