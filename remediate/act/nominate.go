package act

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/tally"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// nomination keeps the room that evictions make for the pod that waits, in the way
// the scheduler's own preemption does: status.nominatedNodeName. Without it the
// evicted pod's successor, which is new to the queue, can take the room back while
// the waiting pod is in back-off (measured: 1 in 8). The scheduler takes it back with every
// try in vain, and every pod that ends anywhere has it try (fit.go, k8s 1.37): it is given
// again right behind an eviction, and as soon as it is taken back until the pod runs.
type nomination struct {
	pod  diagnosis.Target
	node string
}

// keepsRoom says whether the plan evicts pods, for others to have their room.
func (r *run) keepsRoom() bool {
	return slices.ContainsFunc(r.actions, func(a diagnosis.Action) bool { return a.Verb == diagnosis.VerbEvict && !restarts(a) })
}

// nominations are the waiting pods that the plan's evictions are for, each with the node
// that was proved for it; none when it evicts nobody. Where the plan changes what makes the
// pods, those that wait now are others than those that it was made for.
func (r *run) nominations(ctx context.Context) ([]nomination, error) {
	emptied, changed := map[string]bool{}, false
	for _, a := range r.actions {
		if a.Verb == diagnosis.VerbEvict && !restarts(a) {
			emptied[a.Relies["node"]] = true
		}
		changed = changed || a.Verb == diagnosis.VerbPatch && a.Target.Kind != "Pod" || a.Verb == diagnosis.VerbRecreate
	}
	if len(emptied) == 0 {
		return nil, nil
	}
	spec := r.rem.Spec
	waiting := spec.Waiting
	if changed {
		var err error
		if waiting, err = r.remade(ctx); err != nil {
			return nil, err
		}
	}
	var out []nomination
	for i, w := range waiting {
		node := w.Node
		if i == 0 && node == "" {
			node = spec.Node
		}
		if emptied[node] {
			out = append(out, nomination{pod: diagnosis.Target{Kind: "Pod", Namespace: spec.Workload.Namespace, Name: w.Name, UID: string(w.UID)}, node: node})
		}
	}
	return out, nil
}

// remade are the workload's pods that wait now, each in the place of one that the plan was made
// for.
func (r *run) remade(ctx context.Context) ([]v1alpha1.Pod, error) {
	others, err := r.tally().Others(ctx)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Pod
	for _, p := range others {
		if at := len(out); tally.Waits(p) && at < len(r.rem.Spec.Waiting) {
			out = append(out, v1alpha1.Pod{Name: p.Name, UID: p.UID, Node: r.rem.Spec.Waiting[at].Node})
		}
	}
	return out, nil
}

// madeAgain says whether the plan makes the workload again before it evicts anybody.
func (r *run) madeAgain() bool {
	w := r.rem.Spec.Workload
	for _, a := range r.actions {
		switch {
		case a.Verb == diagnosis.VerbEvict:
			return false
		case a.Verb == diagnosis.VerbRecreate && a.Target.Kind == w.Kind && a.Target.Namespace == w.Namespace && a.Target.Name == w.Name:
			return true
		}
	}
	return false
}

// nominate names the node in the status of the pods that are to have it, again when a try
// of the scheduler in between has cleared it. on limits that to one node; empty: all. Where
// the plan makes the workload again nobody is evicted for it before its pods are there.
func (r *run) nominate(ctx context.Context, on string) (missing string, err error) {
	all, err := r.nominations(ctx)
	if err != nil {
		return "", err
	}
	if on != "" && len(all) == 0 && !r.DryRun && r.madeAgain() {
		if others, err := r.tally().Others(ctx); err != nil || len(others) == 0 {
			return "its pods are not made again yet", err
		}
	}
	for _, n := range all {
		if on != "" && n.node != on {
			continue
		}
		if missing, err = r.name(ctx, n.pod, n.node); err != nil || missing != "" {
			return missing, err
		}
	}
	return "", nil
}

// keepRoom nominates, and goes on with it for a Poll: the pods are watched, and one whose
// nomination the scheduler has just taken back has it again before the successor of an evicted
// pod is tried. It ends early when one of them gets its node, or is gone.
func (r *run) keepRoom(ctx context.Context, e *journal.Entry) (missing string, err error) {
	if !r.keepsRoom() {
		return "", nil
	}
	all, err := r.nominations(ctx)
	if err != nil {
		return "", err
	}
	look, cancel := context.WithTimeout(ctx, r.Poll)
	defer cancel()
	var changes <-chan watch.Event // nil where they cannot be watched: the next try nominates all the same
	if pods, err := r.Client.CoreV1().Pods(r.rem.Spec.Workload.Namespace).Watch(look, metav1.ListOptions{FieldSelector: "spec.nodeName="}); err == nil {
		defer pods.Stop()
		changes = pods.ResultChan()
	}
	for again := true; again; again = lost(look, changes, all) {
		for _, n := range all {
			if missing, err = r.name(ctx, n.pod, n.node); err != nil {
				return "", err
			}
		}
	}
	e.Waited = true
	return missing, nil
}

// lost waits until a pod has lost its nomination; false where the look has ended, or one has its node or is gone.
func lost(look context.Context, changes <-chan watch.Event, all []nomination) bool {
	for {
		select {
		case <-look.Done():
			return false
		case change, open := <-changes:
			if !open {
				changes = nil
			}
			p, ok := change.Object.(*corev1.Pod)
			i := slices.IndexFunc(all, func(n nomination) bool { return ok && string(p.UID) == n.pod.UID })
			switch {
			case i < 0:
			case change.Type == watch.Deleted || p.Spec.NodeName != "":
				return false
			case p.Status.NominatedNodeName != all[i].node:
				return true
			}
		}
	}
}

// nominateNobody takes our nominations back.
func (r *run) nominateNobody(ctx context.Context) (missing string, err error) {
	all, err := r.nominations(ctx)
	if err != nil {
		return "", err
	}
	for _, n := range all {
		if missing, err = r.name(ctx, n.pod, ""); err != nil || missing != "" {
			return missing, err
		}
	}
	return "", nil
}

// name writes the node into a waiting pod's status; "" takes it out. A pod that is gone or
// bound needs none. Without the right to patch pods/status the first pod that comes has
// the room.
func (r *run) name(ctx context.Context, pod diagnosis.Target, node string) (missing string, err error) {
	p, err := r.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (string(p.UID) != pod.UID || p.Spec.NodeName != "" || p.Status.NominatedNodeName == node) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read pod %s/%s: %w", pod.Namespace, pod.Name, err)
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
