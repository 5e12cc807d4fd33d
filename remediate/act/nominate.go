package act

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
)

// nomination keeps the room that evictions make for the pod that waits, in the way
// the scheduler's own preemption does: status.nominatedNodeName. Without it the
// evicted pod's successor, which is new to the queue, can take the room back while
// the waiting pod is in back-off (measured: 1 in 8).
type nomination struct {
	pod  diagnosis.Target
	node string
}

// nomination chooses the waiting pod that the plan's evictions are for; nil when it
// evicts nobody.
func (r *run) nomination() *nomination {
	spec, evicts := r.rem.Spec, false
	for _, a := range r.actions {
		evicts = evicts || a.Verb == diagnosis.VerbEvict && !restarts(a) && a.Relies["node"] == spec.Node
		if a.Verb == diagnosis.VerbPatch && a.Target.Kind != "Pod" || a.Verb == diagnosis.VerbRecreate {
			return nil // the pod that waits will be another by then
		}
	}
	if !evicts || len(spec.Waiting) == 0 {
		return nil
	}
	return &nomination{pod: diagnosis.Target{Kind: "Pod", Namespace: spec.Workload.Namespace, Name: spec.Waiting[0].Name, UID: string(spec.Waiting[0].UID)}, node: spec.Node}
}

// nominate names the node in the waiting pod's status, again when a try of the
// scheduler in between has cleared it; node "" takes our nomination back. A pod
// that is gone or bound needs none. Without the right to patch pods/status the first
// pod that comes has the room.
func (r *run) nominate(ctx context.Context, node string) (missing string, err error) {
	n := r.nomination()
	if n == nil {
		return "", nil
	}
	p, err := r.Client.CoreV1().Pods(n.pod.Namespace).Get(ctx, n.pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (string(p.UID) != n.pod.UID || p.Spec.NodeName != "" || p.Status.NominatedNodeName == node) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read pod %s/%s: %w", n.pod.Namespace, n.pod.Name, err)
	}
	err = r.sendNomination(ctx, p, node)
	switch {
	case apierrors.IsForbidden(err):
		return "", nil
	case apierrors.IsConflict(err):
		return "others write to it", nil
	case err != nil:
		return "", fmt.Errorf("nominate %q for pod %s/%s: %w", node, p.Namespace, p.Name, err)
	}
	return "", nil
}

func (r *run) sendNomination(ctx context.Context, p *corev1.Pod, node string) error {
	var value any = node
	if node == "" {
		value = nil
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"nominatedNodeName": value}})
	if err != nil {
		return err
	}
	patch, err := withPreconditions(body, p)
	if err != nil {
		return err
	}
	_, err = r.As.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: plan.FieldManager, DryRun: r.dryRun()}, "status")
	return err
}
