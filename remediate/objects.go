package remediate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca"
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
func stale(err error, t rca.Target) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %s %s has changed: %w", ErrStale, strings.ToLower(t.Kind), strings.TrimPrefix(t.Namespace+"/"+t.Name, "/"), err)
	}
	return err
}

func (r *runner) patch(ctx context.Context, a rca.Action) error {
	t := a.Target
	return r.step(fmt.Sprintf("patch %s/%s", strings.ToLower(t.Kind), t.Name), func() error {
		err := r.onFresh(ctx, t, func(o metav1.Object) error {
			if q, ok := o.(*corev1.ResourceQuota); ok {
				if err := sameLimits(q, a.Relies); err != nil {
					return err
				}
			}
			patch, err := withPreconditions(a.Patch, o)
			if err != nil {
				return fmt.Errorf("build the patch: %w", err)
			}
			return r.send(ctx, t, patch)
		})
		if err == nil && t.Kind == "ResourceQuota" && !r.DryRun {
			return r.quotaInForce(ctx, t)
		}
		return err
	})
}

func (r *runner) send(ctx context.Context, t rca.Target, patch []byte) error {
	var err error
	opts := metav1.PatchOptions{DryRun: r.dryRun(), FieldManager: fieldManager}
	switch t.Kind {
	case "Deployment":
		_, err = r.Client.AppsV1().Deployments(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "StatefulSet":
		_, err = r.Client.AppsV1().StatefulSets(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "ReplicaSet":
		_, err = r.Client.AppsV1().ReplicaSets(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "DaemonSet":
		_, err = r.Client.AppsV1().DaemonSets(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "ResourceQuota":
		_, err = r.Client.CoreV1().ResourceQuotas(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	case "Pod":
		_, err = r.Client.CoreV1().Pods(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType, patch, opts)
	default:
		err = fmt.Errorf("%w: a %s cannot be patched here", ErrRefused, t.Kind)
	}
	return err
}
