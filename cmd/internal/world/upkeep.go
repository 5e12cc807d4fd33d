package world

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// collect removes what belongs to a workload that is gone, as the garbage
// collector does. Owners are listed last: one that is not among them then was not
// just made.
func (c *controllers) collect(ctx context.Context) error {
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	sets, err := c.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owners, err := c.owners(ctx)
	if err != nil {
		return err
	}
	var errs []error
	gone := func(o metav1.Object) *metav1.DeleteOptions {
		owner := metav1.GetControllerOf(o)
		if owner == nil || !slices.Contains([]string{"Deployment", "ReplicaSet", "Job"}, owner.Kind) || owners[owner.UID] {
			return nil
		}
		uid := o.GetUID()
		return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	}
	for i := range sets.Items {
		if o := gone(&sets.Items[i]); o != nil {
			errs = append(errs, ignoreGone(c.client.AppsV1().ReplicaSets(sets.Items[i].Namespace).Delete(ctx, sets.Items[i].Name, *o)))
		}
	}
	for i := range pods.Items {
		if o := gone(&pods.Items[i]); o != nil {
			errs = append(errs, ignoreGone(c.client.CoreV1().Pods(pods.Items[i].Namespace).Delete(ctx, pods.Items[i].Name, *o)))
		}
	}
	return errors.Join(errs...)
}

func (c *controllers) owners(ctx context.Context) (map[types.UID]bool, error) {
	out := map[types.UID]bool{}
	deployments, err := c.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range deployments.Items {
		out[o.UID] = true
	}
	sets, err := c.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range sets.Items {
		out[o.UID] = true
	}
	jobs, err := c.client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range jobs.Items {
		out[o.UID] = true
	}
	return out, nil
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// taint gives a cordoned node its taint and takes it off again, as the node
// lifecycle controller does.
func (c *controllers) taint(ctx context.Context, n *corev1.Node) error {
	mark := func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }
	if slices.ContainsFunc(n.Spec.Taints, mark) == n.Spec.Unschedulable {
		return nil
	}
	if n.Spec.Unschedulable {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	} else {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, mark)
	}
	_, err := c.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	return err
}
