package act

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
)

// patch changes an object.
type patch struct{ action }

func newPatch(a action) verb { return patch{a} }

func (v patch) steps() []journal.Step {
	return v.oneStep(fmt.Sprintf("patch %s/%s", strings.ToLower(v.Target.Kind), v.Target.Name), pace.Contention, v.merge)
}

func (v patch) rights() []right { return []right{rightOn("patch", v.Target)} }

// check says that a Deployment whose template is patched has got another template than
// that of its pods that wait, on which the patch was proved; that other pods would stop
// with it than were shown, or that a budget forbids it.
func (v patch) check(st *cluster.State, waiting []string) error {
	if err := asShown(st, v.Action); err != nil || v.Target.Kind != "Deployment" {
		return err
	}
	o, _ := st.Owner(v.Target.Kind, v.Target.Namespace, v.Target.Name)
	d, ok := o.(*appsv1.Deployment)
	for _, name := range waiting {
		if p := st.Pod(v.Target.Namespace, name); ok && p != nil && madeFromAnother(st, p, d) {
			return fmt.Errorf("%w: the template of %s was changed since its pod %s was made", plan.ErrStale, nameOf(v.Target), name)
		}
	}
	return nil
}

// merge merges the change into the target. After a crash, or an answer that was lost, the
// target tells whether that was done: then the patch changes nothing in it.
func (v patch) merge(ctx context.Context, e *journal.Entry) (string, error) {
	if e.Again || e.Note == journal.Written {
		o, err := v.object(ctx, v.Target)
		if err != nil {
			return "", stale(err, v.Target)
		}
		done, err := patched(o, v.Patch)
		if err != nil {
			return "", err
		}
		if done && string(o.GetUID()) == v.Target.UID {
			v.restarted()
			return inForce(o), nil
		}
	}
	o, err := v.fresh(ctx, v.Target)
	if err != nil {
		return "", err
	}
	if q, ok := o.(*corev1.ResourceQuota); ok {
		if err := sameLimits(q, v.Relies); err != nil {
			return "", err
		}
	}
	if err := v.stopsAsShown(ctx, o); err != nil {
		return "", err
	}
	change, err := withPreconditions(v.Patch, o)
	if err != nil {
		return "", fmt.Errorf("build the patch: %w", err)
	}
	if err := v.ask(v.Target.UID, func() error { return v.send(ctx, v.Target, change) }); apierrors.IsConflict(err) {
		return "others write to it", nil
	} else if err != nil {
		return "", stale(err, v.Target)
	}
	e.Note = journal.Written
	v.restarted()
	if v.Target.Kind == "ResourceQuota" && !v.DryRun {
		return "its new limits are not in force yet", nil
	}
	return "", nil
}

func inForce(o metav1.Object) string {
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
	return false, fmt.Errorf("%w: %s/%s cannot be patched here", plan.ErrRefused, o.GetNamespace(), o.GetName())
}

func unchanged[T any](old *T, patch []byte) (bool, error) {
	var next T
	if err := merged(old, patch, &next); err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(*old, next), nil
}

func (r *run) send(ctx context.Context, t diagnosis.Target, patch []byte) error {
	var err error
	opts := metav1.PatchOptions{DryRun: r.dryRun(), FieldManager: plan.FieldManager}
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
		err = fmt.Errorf("%w: a %s cannot be patched here", plan.ErrRefused, t.Kind)
	}
	return err
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
