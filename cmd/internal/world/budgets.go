package world

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	budgetResource = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	budgetKind     = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
)

// spend takes one disruption off the budget that guards a pod, or refuses
// (kubernetes pkg/registry/core/pod/storage/eviction.go). As there, that comes
// before the preconditions are checked.
func (s *store) spend(pod *corev1.Pod, dry bool) error {
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
		return nil
	}
	guards, err := s.guards(pod)
	if err != nil || len(guards) == 0 {
		return err
	}
	if len(guards) > 1 {
		return apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	b := &guards[0]
	broken := !ready(pod)
	always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	if broken && (always || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0) {
		return nil
	}
	if b.Status.ObservedGeneration < b.Generation {
		return overBudget(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name))
	}
	if b.Status.DisruptionsAllowed < 1 {
		return overBudget(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy))
	}
	if dry {
		return nil
	}
	b.Status.DisruptionsAllowed--
	b.ResourceVersion = s.next()
	return s.updated(budgetResource, b, b.Namespace)
}

func overBudget(retryAfter int, says string) error {
	refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: says})
	return refusal
}

func (s *store) guards(pod *corev1.Pod) ([]policyv1.PodDisruptionBudget, error) {
	list, err := s.tracker.List(budgetResource, budgetKind, pod.Namespace)
	if err != nil {
		return nil, err
	}
	var out []policyv1.PodDisruptionBudget
	for _, b := range list.(*policyv1.PodDisruptionBudgetList).Items {
		if sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && sel.Matches(labels.Set(pod.Labels)) {
			out = append(out, b)
		}
	}
	return out, nil
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// budget counts the pods a budget guards, as the disruption controller does.
func (c *controllers) budget(ctx context.Context, b *policyv1.PodDisruptionBudget) error {
	sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil // the API server admits none that cannot be read
	}
	pods, err := c.client.CoreV1().Pods(b.Namespace).List(ctx, metav1.ListOptions{LabelSelector: sel.String()})
	if err != nil {
		return err
	}
	next := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
	for i := range pods.Items {
		if p := &pods.Items[i]; ready(p) && p.DeletionTimestamp == nil {
			next.CurrentHealthy++
		}
	}
	expected, err := c.expected(ctx, pods.Items)
	if err != nil {
		return err
	}
	next.ExpectedPods = expected
	switch {
	case b.Spec.MaxUnavailable != nil:
		next.DesiredHealthy = max(0, expected-scaled(b.Spec.MaxUnavailable, expected))
	case b.Spec.MinAvailable != nil:
		next.DesiredHealthy = scaled(b.Spec.MinAvailable, expected)
	}
	next.DisruptionsAllowed = max(0, next.CurrentHealthy-next.DesiredHealthy)
	if is := b.Status; is.ObservedGeneration == next.ObservedGeneration && is.CurrentHealthy == next.CurrentHealthy && is.DesiredHealthy == next.DesiredHealthy &&
		is.ExpectedPods == next.ExpectedPods && is.DisruptionsAllowed == next.DisruptionsAllowed {
		return nil
	}
	b.Status = next
	_, err = c.client.PolicyV1().PodDisruptionBudgets(b.Namespace).UpdateStatus(ctx, b, metav1.UpdateOptions{})
	return err
}

// expected is how many pods there should be: what their ReplicaSets ask for, and
// the others that there are.
func (c *controllers) expected(ctx context.Context, pods []corev1.Pod) (int32, error) {
	var sum int32
	seen := map[string]bool{}
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		if owner == nil || owner.Kind != "ReplicaSet" {
			sum++
			continue
		}
		if seen[owner.Name] {
			continue
		}
		seen[owner.Name] = true
		set, err := c.client.AppsV1().ReplicaSets(pods[i].Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		sum += int32(replicas(set.Spec.Replicas))
	}
	return sum, nil
}

func scaled(n *intstr.IntOrString, of int32) int32 {
	v, err := intstr.GetScaledValueFromIntOrPercent(n, int(of), true)
	if err != nil {
		return of // not admitted by the API server
	}
	return int32(v)
}
