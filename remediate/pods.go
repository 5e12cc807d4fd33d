package remediate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/watcher"
)

func (r *runner) dryRun() []string {
	if r.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func evictText(t rca.Target) string { return "evict " + t.Namespace + "/" + t.Name }

// evict asks the Eviction API, and only that: never a deletion. A budget that
// says no is asked again until the deadline; a pod that was replaced, moved or
// changed makes the plan stale.
func (r *runner) evict(ctx context.Context, t rca.Target) error {
	ctx, cancel := context.WithTimeout(ctx, r.Deadlines.Evict)
	defer cancel()
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(r.Poll), backoff.WithMaxInterval(10*r.Poll), backoff.WithMaxElapsedTime(r.Deadlines.Evict))
	var last error // the time can run out inside a request: client-go obeys Retry-After
	err := backoff.Retry(func() error {
		err := r.evictOnce(ctx, t)
		if budgets := blockedBy(err); len(budgets) > 0 {
			err = fmt.Errorf("a PodDisruptionBudget does not allow the eviction of %s/%s (%s): %w", t.Namespace, t.Name, strings.Join(budgets, "; "), err)
			last = err
		} else if err != nil && !apierrors.IsConflict(err) && !transient(err) {
			err = backoff.Permanent(err)
		}
		if err != nil && r.DryRun {
			err = backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(wait, ctx))
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return last
	}
	return err
}

// evictOnce reads the pod again and evicts it as it was read.
func (r *runner) evictOnce(ctx context.Context, t rca.Target) error {
	o, err := r.fresh(ctx, t)
	if apierrors.IsNotFound(err) || err == nil && o.GetDeletionTimestamp() != nil {
		return nil // it leaves by itself
	}
	if err != nil {
		return err
	}
	uid, version := o.GetUID(), o.GetResourceVersion()
	err = r.Client.PolicyV1().Evictions(t.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, DryRun: r.dryRun()},
	})
	switch {
	case err == nil && !r.DryRun:
		r.evicted++
	case err == nil:
	case apierrors.IsNotFound(err):
		return nil
	default:
		err = fmt.Errorf("evict pod %s/%s: %w", t.Namespace, t.Name, err)
	}
	return err
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

// until looks again and again whether something holds, up to a deadline; it
// returns what was missing last. An API server that cannot answer is asked again.
func (r *runner) until(ctx context.Context, deadline time.Duration, holds func(context.Context) (missing string, err error)) error {
	end := r.Now().Add(deadline)
	tick := time.NewTicker(r.Poll)
	defer tick.Stop()
	for {
		missing, err := holds(ctx)
		if transient(err) {
			missing, err = err.Error(), nil
		}
		if err != nil || missing == "" {
			return err
		}
		if !r.Now().Before(end) {
			return fmt.Errorf("not within %s: %s", deadline, missing)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, ctx.Err())
		case <-tick.C:
		}
	}
}

// waitGone waits until the victims have left.
func (r *runner) waitGone(ctx context.Context, victims []rca.Target) error {
	return r.until(ctx, r.Deadlines.Leave, func(ctx context.Context) (string, error) {
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
	})
}

// waitRunning waits until a pod of the incident's workload runs that did not run
// before.
func (r *runner) waitRunning(ctx context.Context, d rca.Diagnosis) (string, error) {
	name := ""
	err := r.step("wait until the pod runs", func() error {
		return r.until(ctx, r.Deadlines.Run, func(ctx context.Context) (string, error) {
			var err error
			name, err = r.running(ctx, d)
			if err != nil || name != "" {
				return "", err
			}
			if n := r.nomination; n != nil {
				if err := r.nominate(ctx, n.node); err != nil {
					return "", err
				}
			}
			return "no pod of " + d.Workload.Kind + "/" + d.Workload.Name + " has started to run", nil
		})
	})
	return name, err
}

func (r *runner) running(ctx context.Context, d rca.Diagnosis) (string, error) {
	pods, err := r.Client.CoreV1().Pods(d.Workload.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list pods of %s: %w", d.Workload.Namespace, err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || !r.belongs(ctx, &p, d) {
			continue
		}
		// Creation times are whole seconds: what was not there at the re-proof is new.
		was := r.state.Pod(p.Namespace, p.Name)
		made := was == nil || was.UID != p.UID
		if made || slices.Contains(d.Pods.Names, p.Name) {
			return p.Namespace + "/" + p.Name, nil
		}
	}
	return "", nil
}

// belongs says whether the pod is one of the incident's workload.
func (r *runner) belongs(ctx context.Context, p *corev1.Pod, d rca.Diagnosis) bool {
	lookup := func(kind, ns, name string) (metav1.Object, bool) {
		if kind != "ReplicaSet" && kind != "Job" {
			return nil, false
		}
		o, err := r.object(ctx, rca.Target{Kind: kind, Namespace: ns, Name: name})
		return o, err == nil
	}
	return watcher.Topmost(p, lookup) == d.Workload
}
