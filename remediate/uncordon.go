package remediate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// uncordon opens a node that a person closed, or a quarantine of ours, as the plan says:
// not when an operation has closed it since, nor when the node is not as the plan relies
// on it.
func (r *runner) uncordon(ctx context.Context, a diagnosis.Action, e *entry) (string, error) {
	n, now, err := r.look(ctx, a.Target)
	if err != nil {
		return "", err
	}
	mark, err := v1alpha1.OperationOn(n)
	quarantined := err == nil && mark != nil && mark.Quarantined != ""
	if (mark != nil || err != nil) && !quarantined && !r.DryRun {
		return "", fmt.Errorf("%w: node %s is cordoned by an operation: %s", ErrRefused, n.Name, n.Annotations[annotation])
	}
	if e.again && !n.Spec.Unschedulable {
		return "", nil // opened before a crash
	}
	relied := a.Relies
	if r.remakes(a.Target) { // all about its GPUs is new, by our own doing
		relied, now = ofNode(relied), ofNode(now)
	}
	if err := drift(n.Name, relied, now); err != nil {
		return "", err
	}
	meta := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}
	if quarantined {
		meta["annotations"] = map[string]any{annotation: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "spec": map[string]any{"unschedulable": nil}})
	if err != nil {
		return "", fmt.Errorf("build the patch: %w", err)
	}
	_, err = r.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: r.dryRun()})
	if apierrors.IsConflict(err) {
		return "others write to it", nil
	}
	return "", stale(err, a.Target)
}

// remakes says whether the plan re-makes GPUs of the node: it is opened after that.
func (r *runner) remakes(node diagnosis.Target) bool {
	return slices.ContainsFunc(r.rem.Spec.Actions, func(a diagnosis.Action) bool { return a.Relayout != nil && a.Target == node })
}

// ofNode keeps the facts that say nothing of GPUs.
func ofNode(facts map[string]string) map[string]string {
	return map[string]string{"unschedulable": facts["unschedulable"], "taints": facts["taints"]}
}
