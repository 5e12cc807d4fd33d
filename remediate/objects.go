package remediate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
)

// withPreconditions adds the uid and the resourceVersion to a merge patch: the API
// server refuses when the object is another by then.
func withPreconditions(patch []byte, o metav1.Object) ([]byte, error) {
	conditions, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion()}})
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergeMergePatches(patch, conditions)
}

// stale turns what tells of another object into ErrStale.
func stale(err error, t diagnosis.Target) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s is gone (%w)", ErrStale, nameOf(t), err)
	}
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %s has changed: %w", ErrStale, nameOf(t), err)
	}
	return err
}

// nameOf is how a target is named to a person.
func nameOf(t diagnosis.Target) string {
	return strings.ToLower(t.Kind) + " " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/")
}

// written is the note of a step whose write was answered: what remains is to wait.
const written = "written"

// patch merges the change into the target. After a crash the target tells whether
// that was done: then the patch changes nothing in it.
func (r *runner) patch(ctx context.Context, a diagnosis.Action, e *entry) (string, error) {
	if e.again || e.Note == written {
		o, err := r.object(ctx, a.Target)
		if err != nil {
			return "", stale(err, a.Target)
		}
		if done, err := patched(o, a.Patch); err != nil || done && string(o.GetUID()) == a.Target.UID {
			return r.inForce(o), err
		}
	}
	o, err := r.fresh(ctx, a.Target)
	if err != nil {
		return "", err
	}
	if q, ok := o.(*corev1.ResourceQuota); ok {
		if err := sameLimits(q, a.Relies); err != nil {
			return "", err
		}
	}
	patch, err := withPreconditions(a.Patch, o)
	if err != nil {
		return "", fmt.Errorf("build the patch: %w", err)
	}
	if err := r.send(ctx, a.Target, patch); apierrors.IsConflict(err) {
		return "others write to it", nil
	} else if err != nil {
		return "", stale(err, a.Target)
	}
	e.Note = written
	if a.Target.Kind == "ResourceQuota" && !r.DryRun {
		return "its new limits are not in force yet", nil
	}
	return "", nil
}

func (r *runner) inForce(o metav1.Object) string {
	if q, ok := o.(*corev1.ResourceQuota); ok {
		return quotaInForce(q)
	}
	return ""
}

// patched says whether the patch would change nothing.
func patched(o metav1.Object, patch []byte) (bool, error) {
	switch old := o.(type) {
	case *appsv1.Deployment:
		return unchanged(old, patch)
	case *appsv1.StatefulSet:
		return unchanged(old, patch)
	case *appsv1.ReplicaSet:
		return unchanged(old, patch)
	case *appsv1.DaemonSet:
		return unchanged(old, patch)
	case *corev1.ResourceQuota:
		return unchanged(old, patch)
	case *corev1.Pod:
		return unchanged(old, patch)
	}
	return false, fmt.Errorf("%w: %s/%s cannot be patched here", ErrRefused, o.GetNamespace(), o.GetName())
}

func unchanged[T any](old *T, patch []byte) (bool, error) {
	var next T
	if err := merged(old, patch, &next); err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(*old, next), nil
}

func (r *runner) send(ctx context.Context, t diagnosis.Target, patch []byte) error {
	var err error
	opts := metav1.PatchOptions{DryRun: r.dryRun(), FieldManager: fieldManager}
	switch t.Kind {
	case "Deployment":
		_, err = r.As.AppsV1().Deployments(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "StatefulSet":
		_, err = r.As.AppsV1().StatefulSets(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "ReplicaSet":
		_, err = r.As.AppsV1().ReplicaSets(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "DaemonSet":
		_, err = r.As.AppsV1().DaemonSets(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "ResourceQuota":
		_, err = r.As.CoreV1().ResourceQuotas(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "Pod":
		_, err = r.As.CoreV1().Pods(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	default:
		err = fmt.Errorf("%w: a %s cannot be patched here", ErrRefused, t.Kind)
	}
	return err
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func parseTime(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) }
