package world

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// controllers keep Deployments, ReplicaSets and Jobs at their number of pods,
// budgets counted, cordoned nodes tainted, and nothing without its owner. They look at everything again after any change: a world is small.
type controllers struct {
	client kubernetes.Interface
}

// retry is how soon a pass that met a conflict is made again.
const retry = 50 * time.Millisecond

func (c *controllers) run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(c.client, 0)
	wake := make(chan struct{}, 1)
	poke := func() {
		select {
		case wake <- struct{}{}:
		default: // a pass is due already
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { poke() }, UpdateFunc: func(_, _ any) { poke() }, DeleteFunc: func(any) { poke() }}
	for _, in := range []cache.SharedIndexInformer{
		factory.Core().V1().Pods().Informer(), factory.Apps().V1().ReplicaSets().Informer(),
		factory.Apps().V1().Deployments().Informer(), factory.Batch().V1().Jobs().Informer(),
		factory.Core().V1().Nodes().Informer(), factory.Policy().V1().PodDisruptionBudgets().Informer(),
	} {
		if _, err := in.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch workloads: %w", err)
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	again := time.NewTimer(retry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-again.C:
		}
		if err := c.pass(ctx); err != nil {
			again.Reset(retry)
		}
	}
}

// pass looks at every workload once; errors are those of single writes, and the
// next pass mends them.
func (c *controllers) pass(ctx context.Context) error {
	errs := []error{c.collect(ctx)}
	deployments, err := c.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range deployments.Items {
		errs = append(errs, c.deployment(ctx, &deployments.Items[i]))
	}
	sets, err := c.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		errs = append(errs, c.pods(ctx, s, appsv1.SchemeGroupVersion.String(), "ReplicaSet", replicas(s.Spec.Replicas), s.Spec.Template))
	}
	jobs, err := c.client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		errs = append(errs, c.pods(ctx, j, batchv1.SchemeGroupVersion.String(), "Job", replicas(j.Spec.Parallelism), j.Spec.Template))
	}
	return errors.Join(append(errs, c.rest(ctx))...)
}

// rest looks at what is no workload.
func (c *controllers) rest(ctx context.Context) error {
	var errs []error
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		errs = append(errs, c.taint(ctx, &nodes.Items[i]))
	}
	budgets, err := c.client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range budgets.Items {
		errs = append(errs, c.budget(ctx, &budgets.Items[i]))
	}
	return errors.Join(errs...)
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// deployment keeps one ReplicaSet per template, the newest at full size.
func (c *controllers) deployment(ctx context.Context, d *appsv1.Deployment) error {
	text, err := json.Marshal(d.Spec.Template)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%.4x", d.Name, sha256.Sum256(text))
	sets, err := c.client.AppsV1().ReplicaSets(d.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := false
	for i := range sets.Items {
		s := sets.Items[i].DeepCopy()
		if !metav1.IsControlledBy(s, d) {
			continue
		}
		want := int32(0)
		if s.Name == name {
			want, found = int32(replicas(d.Spec.Replicas)), true
		}
		if int32(replicas(s.Spec.Replicas)) != want {
			s.Spec.Replicas = &want
			if _, err := c.client.AppsV1().ReplicaSets(d.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	if found {
		return nil
	}
	_, err = c.client.AppsV1().ReplicaSets(d.Namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name, Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}, metav1.CreateOptions{})
	return err
}

// pods keeps a workload at its number of pods.
func (c *controllers) pods(ctx context.Context, owner metav1.Object, apiVersion, kind string, want int, template corev1.PodTemplateSpec) error {
	list, err := c.client.CoreV1().Pods(owner.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return !metav1.IsControlledBy(&p, owner) || p.Status.Phase == corev1.PodFailed || kind != "Job" && p.Status.Phase == corev1.PodSucceeded
	})
	slices.SortFunc(mine, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range mine[min(want, len(mine)):] {
		if err := c.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	yes := true
	for range want - min(want, len(mine)) {
		p := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
		p.GenerateName, p.Namespace = owner.GetName()+"-", owner.GetNamespace()
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}}
		if _, err := c.client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
