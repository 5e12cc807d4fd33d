package act

import (
	"context"
	"errors"
	"fmt"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// evict has a pod leave its node.
type evict struct{ action }

func newEvict(a action) verb {
	if restarts(a.Action) {
		return restart{evict{a}}
	}
	return evict{a}
}

func (v evict) steps() []journal.Step {
	return v.oneStep(evictText(v.Target), v.Deadlines.Evict, func(ctx context.Context, e *journal.Entry) (string, error) {
		if missing, err := v.nominate(ctx, v.Relies["node"]); err != nil || missing != "" {
			return missing, err
		}
		missing, err := v.evict(ctx, v.Target, e)
		if err != nil || missing != "" || v.DryRun {
			return missing, err
		}
		// The pod has left by our word, whatever comes of this: the wait that follows nominates again.
		_, _ = v.nominate(ctx, v.Relies["node"])
		return "", nil
	})
}

func (v evict) left() string { return v.evicted(v.only(), v.Target) }

// evicted says that a pod was evicted in a step, or may have been; empty when it was not.
func (a action) evicted(step v1alpha1.StepID, t diagnosis.Target) string {
	switch e := a.entry(step); {
	case e == nil || e.Error != "":
		return ""
	case e.Ended != nil:
		return fmt.Sprintf("pod %s/%s was evicted", t.Namespace, t.Name)
	case a.asking == t.UID:
		return fmt.Sprintf("pod %s/%s may have been evicted", t.Namespace, t.Name)
	}
	return ""
}

func (v evict) rights() []right { return []right{evicts(v.Target)} }

func evictText(t diagnosis.Target) string { return "evict " + t.Namespace + "/" + t.Name }

// evict asks the Eviction API, and only that: never a deletion. The pod is read again
// and evicted as it was read; one that was replaced, moved or changed makes the plan
// stale. A budget that says no is asked again until the step's deadline.
func (r *run) evict(ctx context.Context, t diagnosis.Target, e *journal.Entry) (string, error) {
	o, err := r.object(ctx, t)
	switch {
	case apierrors.IsNotFound(err) || err == nil && o.GetDeletionTimestamp() != nil && string(o.GetUID()) == t.UID || err == nil && e.Again && string(o.GetUID()) != t.UID:
		if e.Again { // it leaves, or left, and by our word as far as can be told
			r.asking = ""
			r.rem.Status.Evicted++
		}
		return "", nil
	case err != nil: // it may have left by our word all the same
		return "", err
	}
	if err := r.asProved(o, t); err != nil {
		return "", err
	}
	uid, version := o.GetUID(), o.GetResourceVersion()
	err = r.ask(t.UID, func() error {
		return r.As.PolicyV1().Evictions(t.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, DryRun: r.dryRun()},
		})
	})
	budgets := blockedBy(err)
	if apierrors.IsInternalError(err) && len(budgets) == 0 {
		budgets = r.severalBudgets(ctx, o)
	}
	switch {
	case err == nil && !r.DryRun:
		r.rem.Status.Evicted++
		return "", nil
	case err == nil || apierrors.IsNotFound(err):
		return "", nil
	case len(budgets) > 0 && !r.DryRun && journal.DelayOf(err) == 0:
		return fmt.Sprintf("a PodDisruptionBudget does not allow the eviction of %s/%s (%s)", t.Namespace, t.Name, strings.Join(budgets, "; ")), nil
	case apierrors.IsConflict(err) && !r.DryRun:
		return "others write to it", nil
	}
	return "", fmt.Errorf("evict pod %s/%s: %w", t.Namespace, t.Name, err)
}

// blockedBy is what the API server says of the budgets that do not allow an
// eviction; empty when it refused for another reason.
func blockedBy(refusal error) []string {
	var says []string
	var status apierrors.APIStatus
	if apierrors.IsTooManyRequests(refusal) && errors.As(refusal, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			if c.Type == policyv1.DisruptionBudgetCause {
				says = append(says, c.Message)
			}
		}
	}
	return says
}

// severalBudgets names the budgets of a pod that more than one guards: the Eviction API
// answers for such a pod that it cannot, and not which they are.
func (r *run) severalBudgets(ctx context.Context, pod metav1.Object) []string {
	list, err := r.Client.PolicyV1().PodDisruptionBudgets(pod.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // the API server's own answer stands
	}
	var names []string
	for _, b := range list.Items {
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && s.Matches(labels.Set(pod.GetLabels())) {
			names = append(names, b.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return []string{"it is guarded by " + strings.Join(names, " and ") + ", and the Eviction API supports one"}
}

// gone says which of the victims has not left yet.
func (r *run) gone(ctx context.Context, victims []diagnosis.Target) (string, error) {
	for _, v := range victims {
		p, err := r.Client.CoreV1().Pods(v.Namespace).Get(ctx, v.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && string(p.UID) != v.UID {
			continue
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("pod %s/%s is still terminating", v.Namespace, v.Name), nil
	}
	return "", nil
}
