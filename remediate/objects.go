package remediate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca"
)

// withPreconditions adds the uid, and the resourceVersion when it is known, to a
// merge patch: the API server answers 409 when the object is another by then.
func withPreconditions(patch []byte, uid, version string) ([]byte, error) {
	meta := map[string]any{"uid": uid}
	if version != "" {
		meta["resourceVersion"] = version
	}
	conditions, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergeMergePatches(patch, conditions)
}

// stale turns a conflict into ErrStale.
func stale(err error, t rca.Target) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s %s/%s has changed: %w", ErrStale, t.Kind, t.Namespace, t.Name, err)
	}
	return err
}

func (r *runner) patch(ctx context.Context, a rca.Action) error {
	t := a.Target
	return r.step(fmt.Sprintf("patch %s/%s", strings.ToLower(t.Kind), t.Name), func() error {
		patch, err := withPreconditions(a.Patch, t.UID, "")
		if err != nil {
			return fmt.Errorf("build the patch: %w", err)
		}
		opts := metav1.PatchOptions{DryRun: r.dryRun(), FieldManager: fieldManager}
		switch t.Kind {
		case "Deployment":
			_, err = r.Client.AppsV1().Deployments(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, opts)
		case "StatefulSet":
			_, err = r.Client.AppsV1().StatefulSets(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, opts)
		case "ReplicaSet":
			_, err = r.Client.AppsV1().ReplicaSets(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, opts)
		case "DaemonSet":
			_, err = r.Client.AppsV1().DaemonSets(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, opts)
		case "Pod":
			_, err = r.Client.CoreV1().Pods(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, opts)
		default:
			return fmt.Errorf("%w: a %s cannot be patched here", ErrRefused, t.Kind)
		}
		return stale(err, t)
	})
}

// recreate makes a Job or a bare pod anew with the patch merged in: their specs
// cannot change.
func (r *runner) recreate(ctx context.Context, a rca.Action) error {
	t := a.Target
	return r.step(fmt.Sprintf("make %s/%s anew", strings.ToLower(t.Kind), t.Name), func() error {
		switch t.Kind {
		case "Pod":
			return r.recreatePod(ctx, t, a.Patch)
		case "Job":
			return r.recreateJob(ctx, t, a.Patch)
		}
		return fmt.Errorf("%w: a %s cannot be made anew here", ErrRefused, t.Kind)
	})
}

func (r *runner) deleteOptions(t rca.Target) metav1.DeleteOptions {
	uid, background := types.UID(t.UID), metav1.DeletePropagationBackground
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background, DryRun: r.dryRun()}
}

func (r *runner) recreatePod(ctx context.Context, t rca.Target, patch []byte) error {
	pods := r.Client.CoreV1().Pods(t.Namespace)
	old, err := pods.Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return stale(err, t)
	}
	var next corev1.Pod
	if err := merged(old, patch, &next); err != nil {
		return err
	}
	next.ObjectMeta, next.Status = fresh(next.ObjectMeta), corev1.PodStatus{}
	if err := pods.Delete(ctx, t.Name, r.deleteOptions(t)); err != nil {
		return stale(err, t)
	}
	if r.DryRun {
		return nil
	}
	if err := r.waitGone(ctx, []rca.Target{t}); err != nil {
		return err
	}
	_, err = pods.Create(ctx, &next, metav1.CreateOptions{FieldManager: fieldManager})
	return err
}

func (r *runner) recreateJob(ctx context.Context, t rca.Target, patch []byte) error {
	jobs := r.Client.BatchV1().Jobs(t.Namespace)
	old, err := jobs.Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return stale(err, t)
	}
	var next batchv1.Job
	if err := merged(old, patch, &next); err != nil {
		return err
	}
	next.ObjectMeta, next.Status = fresh(next.ObjectMeta), batchv1.JobStatus{}
	if next.Spec.ManualSelector == nil || !*next.Spec.ManualSelector {
		next.Spec.Selector = nil // the API server makes a new one from the new uid
		maps.DeleteFunc(next.Spec.Template.Labels, func(k, _ string) bool {
			return strings.HasSuffix(k, "controller-uid") || strings.HasSuffix(k, "job-name")
		})
	}
	if err := jobs.Delete(ctx, t.Name, r.deleteOptions(t)); err != nil {
		return stale(err, t)
	}
	if r.DryRun {
		return nil
	}
	if err := r.until(ctx, r.Deadlines.Leave, func(ctx context.Context) (string, error) {
		j, err := jobs.Get(ctx, t.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && string(j.UID) != t.UID {
			return "", nil
		}
		return "the old job is still there", err
	}); err != nil {
		return err
	}
	_, err = jobs.Create(ctx, &next, metav1.CreateOptions{FieldManager: fieldManager})
	return err
}

// merged applies a merge patch to an object.
func merged(old any, patch []byte, into any) error {
	before, err := json.Marshal(old)
	if err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return fmt.Errorf("apply the patch: %w", err)
	}
	return json.Unmarshal(after, into)
}

// fresh is the metadata a new object may carry over.
func fresh(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers}
}
