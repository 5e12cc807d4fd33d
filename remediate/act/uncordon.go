package act

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
)

// uncordon opens a node.
type uncordon struct{ action }

func newUncordon(a action) verb { return uncordon{a} }

func (v uncordon) steps() []journal.Step {
	return v.oneStep("uncordon "+v.Target.Name, pace.Contention, v.open)
}

func (v uncordon) rights() []right { return []right{v.repartition()} }

// open opens a node that a person closed, or a quarantine of ours, as the plan says:
// not when an operation has closed it since, nor when the node is not as the plan relies
// on it.
func (v uncordon) open(ctx context.Context, e *journal.Entry) (string, error) {
	n, now, err := v.look(ctx, v.Target)
	if err != nil {
		return "", err
	}
	mark, err := diagnosis.OperationOn(n)
	quarantined := err == nil && mark != nil && mark.Quarantined != ""
	if (mark != nil || err != nil) && !quarantined && !v.DryRun {
		return "", fmt.Errorf("%w: node %s is cordoned by an operation: %s", plan.ErrRefused, n.Name, n.Annotations[diagnosis.OperationAnnotation])
	}
	if e.Again && !n.Spec.Unschedulable {
		return "", nil // opened before a crash
	}
	relied := v.Relies
	if v.remakes(v.Target) { // all about its GPUs is new, by our own doing
		relied, now = ofNode(relied), ofNode(now)
	}
	if err := drift(n.Name, relied, now); err != nil {
		return "", err
	}
	meta := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}
	if quarantined {
		meta["annotations"] = map[string]any{diagnosis.OperationAnnotation: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "spec": map[string]any{"unschedulable": nil}})
	if err != nil {
		return "", fmt.Errorf("build the patch: %w", err)
	}
	err = v.patchNode(ctx, n, patch)
	if apierrors.IsConflict(err) {
		return "others write to it", nil
	}
	return "", stale(err, v.Target)
}

// remakes says whether the plan re-makes GPUs of the node: it is opened after that.
func (r *run) remakes(node diagnosis.Target) bool {
	return slices.ContainsFunc(r.rem.Spec.Actions, func(a diagnosis.Action) bool { return a.Relayout != nil && a.Target == node })
}

// ofNode keeps the facts that say nothing of GPUs.
func ofNode(facts map[string]string) map[string]string {
	return map[string]string{"unschedulable": facts["unschedulable"], "taints": facts["taints"]}
}
