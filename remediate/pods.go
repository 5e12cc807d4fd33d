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
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/watcher"
)

func (r *runner) dryRun() []string {
	if r.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (r *runner) evictStep(ctx context.Context, t rca.Target) error {
	return r.step("evict "+t.Namespace+"/"+t.Name, func() error { return r.evict(ctx, t) })
}

// evict asks the Eviction API, and only that: never a deletion. A budget that
// says no is asked again until the deadline; a pod of another uid makes the plan
// stale.
func (r *runner) evict(ctx context.Context, t rca.Target) error {
	uid := types.UID(t.UID)
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, DryRun: r.dryRun()},
	}
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(r.Poll), backoff.WithMaxInterval(10*r.Poll), backoff.WithMaxElapsedTime(r.Deadlines.Evict))
	return backoff.Retry(func() error {
		err := r.Client.PolicyV1().Evictions(t.Namespace).Evict(ctx, eviction)
		switch {
		case err == nil:
			r.evicted++
			return nil
		case apierrors.IsNotFound(err):
			return nil // it left by itself
		case apierrors.IsConflict(err):
			return backoff.Permanent(fmt.Errorf("%w: pod %s/%s was replaced", ErrStale, t.Namespace, t.Name))
		case apierrors.IsTooManyRequests(err):
			return r.blocked(ctx, t, err)
		}
		return backoff.Permanent(fmt.Errorf("evict pod %s/%s: %w", t.Namespace, t.Name, err))
	}, backoff.WithContext(wait, ctx))
}

// blocked names the budget that does not allow an eviction.
func (r *runner) blocked(ctx context.Context, t rca.Target, refusal error) error {
	var names []string
	var status apierrors.APIStatus
	if errors.As(refusal, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			if c.Type == policyv1.DisruptionBudgetCause {
				names = append(names, c.Message)
			}
		}
	}
	if ctx.Err() != nil {
		return backoff.Permanent(ctx.Err())
	}
	return fmt.Errorf("a PodDisruptionBudget does not allow the eviction of %s/%s (%s): %w", t.Namespace, t.Name, strings.Join(names, "; "), refusal)
}

// until looks again and again whether something holds, up to a deadline; it
// returns what was missing last.
func (r *runner) until(ctx context.Context, deadline time.Duration, holds func(context.Context) (missing string, err error)) error {
	end := r.Now().Add(deadline)
	tick := time.NewTicker(r.Poll)
	defer tick.Stop()
	for {
		missing, err := holds(ctx)
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
		if p.Status.Phase != corev1.PodRunning || !r.belongs(ctx, &p, d) {
			continue
		}
		waited := slices.Contains(d.Pods.Names, p.Name)
		if waited || p.CreationTimestamp.After(d.Pods.Since) { // or made anew by the fix
			return p.Namespace + "/" + p.Name, nil
		}
	}
	return "", nil
}

// belongs says whether the pod is one of the incident's workload.
func (r *runner) belongs(ctx context.Context, p *corev1.Pod, d rca.Diagnosis) bool {
	lookup := func(kind, ns, name string) (metav1.Object, bool) {
		if kind != "ReplicaSet" {
			return nil, false
		}
		o, err := r.Client.AppsV1().ReplicaSets(ns).Get(ctx, name, metav1.GetOptions{})
		return o, err == nil
	}
	return watcher.Topmost(p, lookup) == d.Workload
}
