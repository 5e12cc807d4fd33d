package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// marked is a node that is ours while our mark is on it: after the cordon, nothing is written
// to one that is no longer.
type marked struct{ action }

// ours reads the node, and our mark on it, without which it is an error: after the
// cordon, nothing is written to a node that is no longer ours.
func (m marked) ours(ctx context.Context) (*corev1.Node, map[string]string, *diagnosis.Operation, error) {
	n, now, err := m.look(ctx, m.Target)
	if err != nil {
		return nil, nil, nil, err
	}
	mark := m.markOf(n)
	if mark == nil && !m.DryRun {
		return nil, nil, nil, notOurs(n)
	}
	if mark == nil {
		mark = m.newMark(n)
	}
	return n, now, mark, nil
}

// notOurs is that somebody has taken our mark off a node, which is left as it is.
func notOurs(n *corev1.Node) error {
	is := "open"
	if n.Spec.Unschedulable {
		is = "cordoned, which a person has to undo: kubectl uncordon " + n.Name
	}
	return fmt.Errorf("%w: node %s is no longer marked as ours; it is left as it is, %s", plan.ErrStale, n.Name, is)
}

// markOf is the mark of this operation on a node; nil when there is another, or none.
func (m marked) markOf(n *corev1.Node) *diagnosis.Operation {
	if mark, err := diagnosis.OperationOn(n); err == nil && mark != nil && mark.ID == m.rem.UID {
		return mark
	}
	return nil
}

func (m marked) newMark(n *corev1.Node) *diagnosis.Operation {
	return &diagnosis.Operation{Plan: m.rem.Name, ID: m.rem.UID, Step: "cordon", PriorUnschedulable: n.Spec.Unschedulable, PriorMIGConfig: n.Labels[nodeprobe.LabelMIGConfig]}
}

// write patches the node on the version it was read at: spec, labels and our mark in
// one write. What it says is missing is another try, when others wrote in between:
// the kubelet's status, MIG manager's labels.
func (m marked) write(ctx context.Context, n *corev1.Node, spec, labels map[string]any, mark *diagnosis.Operation) (missing string, err error) {
	var note any
	if mark != nil {
		if note, err = mark.Annotation(); err != nil {
			return "", err
		}
	}
	meta := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{diagnosis.OperationAnnotation: note}}
	body := map[string]any{"metadata": meta}
	if labels != nil {
		meta["labels"] = labels
	}
	if spec != nil {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("build the patch: %w", err)
	}
	err = m.patchNode(ctx, n, patch)
	if apierrors.IsConflict(err) {
		return "the node is being written by others", nil
	}
	return "", stale(err, m.Target)
}

// unmarked refuses a node that an operation has, or has left closed.
func unmarked(n *corev1.Node) error {
	if mark, err := diagnosis.OperationOn(n); mark != nil || err != nil {
		return fmt.Errorf("%w: node %s is being worked on already: %s; if nobody does, 'unpend release %s' gives it back", plan.ErrRefused, n.Name, n.Annotations[diagnosis.OperationAnnotation], n.Name)
	}
	return nil
}

// release takes our mark off, and our cordon if the node was schedulable before: a
// cordon that a person made stays. On the way there that is an error, for the pod will
// not come to the node.
func (m marked) release(ctx context.Context, there bool) (string, error) {
	n, _, mark, err := m.ours(ctx)
	if err != nil {
		return "", err
	}
	closed := keptClosed(n, mark.PriorUnschedulable)
	var spec map[string]any
	if !mark.PriorUnschedulable && closed == nil {
		spec = map[string]any{"unschedulable": nil}
	}
	missing, err := m.write(ctx, n, spec, nil, nil)
	if err != nil {
		return "", fmt.Errorf("uncordon %s: %w", m.Target.Name, err)
	}
	if missing != "" || !there {
		return missing, nil
	}
	return "", closed
}

// keptClosed says who wants the node cordoned since we did: a person by the annotation
// for it, or whose name the API server keeps beside the field; nil when nobody has, or it
// was closed before. kubectl cordon writes nothing to a node that is cordoned: of that
// nobody can know.
func keptClosed(n *corev1.Node, before bool) error {
	if before || !n.Spec.Unschedulable {
		return nil
	}
	const stays = "its layout is made, it stays cordoned, and the pod waits until somebody opens it"
	if value, asked := n.Annotations[diagnosis.KeepCordoned]; asked && value != "false" {
		return fmt.Errorf("node %s has the annotation %s=%s: %s", n.Name, diagnosis.KeepCordoned, value, stays)
	}
	for _, f := range n.ManagedFields {
		var has struct {
			Spec struct {
				Unschedulable *struct{} `json:"f:unschedulable"`
			} `json:"f:spec"`
		}
		if f.Manager == plan.FieldManager || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &has) != nil || has.Spec.Unschedulable == nil {
			continue
		}
		return fmt.Errorf("node %s was cordoned by %s meanwhile: %s", n.Name, f.Manager, stays)
	}
	return nil
}

// mine reads the node for the way back; nil when there is nothing of ours on it: it
// is gone, or not marked by us.
func (m marked) mine(ctx context.Context) (*corev1.Node, *diagnosis.Operation, error) {
	n, err := m.node(ctx, m.Target)
	if errors.Is(err, plan.ErrStale) {
		return nil, nil, nil // with the node went what was begun
	}
	if err != nil {
		return nil, nil, fmt.Errorf("node %s could not be taken back: %w", m.Target.Name, err)
	}
	if mark := m.markOf(n); mark != nil {
		return n, mark, nil
	}
	return nil, nil, nil
}

func (m marked) giveBack(ctx context.Context, _ *journal.Entry) (string, error) {
	if n, _, err := m.mine(ctx); err != nil || n == nil {
		return "", err
	}
	return m.release(ctx, false)
}

// parkedFor leaves the node cordoned, with the reason in the mark on it.
func (m marked) parkedFor(ctx context.Context, n *corev1.Node, mark *diagnosis.Operation, why string) (missing string, err error) {
	mark.Step, mark.Parked = "parked", why
	return m.write(ctx, n, nil, nil, mark)
}

// Park leaves the nodes that carry a plan's mark cordoned, with the reason on them, and
// gives back every lock that it holds, whatever its journal says: the mark keeps others off
// until a person has seen to the node. It names those nodes.
func Park(ctx context.Context, d Deps, rem *v1alpha1.Remediation, why error) (nodes []string, err error) {
	r := &run{Deps: d, rem: rem}
	list, err := d.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes to park: %w", err)
	}
	for i := range list.Items {
		n := &list.Items[i]
		m := marked{action{run: r, Action: diagnosis.Action{Target: diagnosis.Target{Kind: "Node", Name: n.Name, UID: string(n.UID)}}}}
		mark := m.markOf(n)
		if mark == nil {
			continue
		}
		nodes = append(nodes, n.Name)
		if missing, err := m.parkedFor(ctx, n, mark, why.Error()); err != nil || missing != "" {
			return nil, fmt.Errorf("park node %s: %w", n.Name, errors.Join(err, errors.New(missing)))
		}
	}
	return nodes, r.unlockAll(ctx)
}
