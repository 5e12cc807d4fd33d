package remediate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/unpend/unpend/rca"
)

// recreate makes a Job or a bare pod anew with the patch merged in: their specs
// cannot change. Nothing is deleted before the API server has said, in a dry run,
// that it would take the new one.
func (r *runner) recreate(ctx context.Context, a rca.Action) error {
	t := a.Target
	return r.step(fmt.Sprintf("make %s/%s anew", strings.ToLower(t.Kind), t.Name), func() error {
		o, err := r.fresh(ctx, t)
		if err != nil {
			return err
		}
		again, err := r.remakeOf(o, a.Patch)
		if err != nil {
			return err
		}
		if err := again.try(ctx); err != nil {
			return err
		}
		if err := r.onFresh(ctx, t, func(o metav1.Object) error { return again.remove(ctx, r.deleteOptions(o)) }); err != nil || r.DryRun {
			return err
		}
		// From here on the workload is missing: it is made even when the caller goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Deadlines.Leave+time.Minute)
		defer cancel()
		return r.replace(ctx, t, again)
	})
}

// remake is how one object is made anew.
type remake struct {
	try    func(context.Context) error // whether the new one would be taken
	remove func(context.Context, metav1.DeleteOptions) error
	create func(context.Context) error
	back   func(context.Context) error // makes the old one again
}

// client is the part of a typed client that making anew takes.
type client[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func remakeWith[T metav1.Object](c client[T], old, next T) remake {
	name := old.GetName()
	create := func(o T) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := c.Create(ctx, o, metav1.CreateOptions{FieldManager: fieldManager})
			return err
		}
	}
	return remake{
		try: func(ctx context.Context) error {
			next.SetName("")
			next.SetGenerateName(name + "-")
			_, err := c.Create(ctx, next, metav1.CreateOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})
			next.SetName(name)
			next.SetGenerateName("")
			if err == nil || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
				return nil // a quota still counts the old one
			}
			return fmt.Errorf("nothing was deleted, for the new one would not be taken: %w", err)
		},
		remove: func(ctx context.Context, opts metav1.DeleteOptions) error { return c.Delete(ctx, name, opts) },
		create: create(next),
		back:   create(old),
	}
}

func (r *runner) replace(ctx context.Context, t rca.Target, again remake) error {
	if err := r.until(ctx, r.Deadlines.Leave, func(ctx context.Context) (string, error) {
		o, err := r.object(ctx, t)
		if apierrors.IsNotFound(err) || err == nil && string(o.GetUID()) != t.UID {
			return "", nil
		}
		return "the old one is still there", err
	}); err != nil {
		return fmt.Errorf("%s/%s was deleted and is not made anew: %w", strings.ToLower(t.Kind), t.Name, err)
	}
	attempt := func(create func(context.Context) error) error {
		return r.until(ctx, contention, func(ctx context.Context) (string, error) { return "", create(ctx) })
	}
	err := attempt(again.create)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return err
	}
	return errors.Join(fmt.Errorf("create the new one: %w", err), attempt(again.back))
}

func (r *runner) deleteOptions(o metav1.Object) metav1.DeleteOptions {
	uid, version, background := o.GetUID(), o.GetResourceVersion(), metav1.DeletePropagationBackground
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: r.dryRun()}
}

func (r *runner) remakeOf(o metav1.Object, patch []byte) (remake, error) {
	switch old := o.(type) {
	case *corev1.Pod:
		return r.remakePod(old, patch)
	case *batchv1.Job:
		return r.remakeJob(old, patch)
	}
	return remake{}, fmt.Errorf("%w: %s/%s cannot be made anew here", ErrRefused, o.GetNamespace(), o.GetName())
}

func (r *runner) remakePod(o *corev1.Pod, patch []byte) (remake, error) {
	var next corev1.Pod
	if err := merged(o, patch, &next); err != nil {
		return remake{}, err
	}
	old := o.DeepCopy()
	for _, p := range []*corev1.Pod{old, &next} {
		p.ObjectMeta, p.Status = carried(p.ObjectMeta), corev1.PodStatus{}
	}
	return remakeWith(r.Client.CoreV1().Pods(o.Namespace), old, &next), nil
}

func (r *runner) remakeJob(o *batchv1.Job, patch []byte) (remake, error) {
	var next batchv1.Job
	if err := merged(o, patch, &next); err != nil {
		return remake{}, err
	}
	old := o.DeepCopy()
	for _, j := range []*batchv1.Job{old, &next} {
		j.ObjectMeta, j.Status = carried(j.ObjectMeta), batchv1.JobStatus{}
		if j.Spec.ManualSelector == nil || !*j.Spec.ManualSelector {
			j.Spec.Selector = nil // the API server makes a new one from the new uid
			for _, labels := range []map[string]string{j.Labels, j.Spec.Template.Labels} {
				maps.DeleteFunc(labels, func(k, _ string) bool {
					return strings.HasSuffix(k, "controller-uid") || strings.HasSuffix(k, "job-name")
				})
			}
		}
	}
	return remakeWith(r.Client.BatchV1().Jobs(o.Namespace), old, &next), nil
}

// merged applies a strategic merge patch to an object.
func merged[T any](old *T, patch []byte, into *T) error {
	before, err := json.Marshal(old)
	if err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, *into)
	if err != nil {
		return fmt.Errorf("apply the patch: %w", err)
	}
	return json.Unmarshal(after, into)
}

// carried is the metadata a new object may take over.
func carried(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers}
}
