package remediate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// broken ends a plan that cannot be trusted. Where it was begun, the nodes that carry
// its mark are left cordoned with the reason on them: what was done is not guessed at.
func (x *Executor) broken(ctx context.Context, rem *v1alpha1.Remediation, why error) error {
	phase, message, err := x.putAside(ctx, rem, why)
	if err != nil {
		return err
	}
	if rem.Status.Phase.Begun() {
		rem.Status.Failure = message
	}
	return x.finish(ctx, rem, phase, message)
}

// putAside parks what a plan has marked, gives its locks back, for the mark keeps others
// off until a person has seen to the node, and says how the plan ends.
func (x *Executor) putAside(ctx context.Context, rem *v1alpha1.Remediation, why error) (v1alpha1.Phase, string, error) {
	if !rem.Status.Phase.Begun() {
		return v1alpha1.Refused, why.Error(), nil
	}
	nodes, err := x.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", fmt.Errorf("list the nodes to park: %w", err)
	}
	var parked []string
	for i := range nodes.Items {
		n := &nodes.Items[i]
		mark, err := v1alpha1.OperationOn(n)
		if err != nil || mark == nil || mark.ID != rem.UID {
			continue
		}
		parked = append(parked, n.Name)
		mark.Step, mark.Parked = "parked", why.Error()
		s := &saga{runner: &runner{Deps: x.Deps, rem: rem}, target: diagnosis.Target{Kind: "Node", Name: n.Name, UID: string(n.UID)}}
		if missing, err := s.write(ctx, n, nil, nil, mark); err != nil || missing != "" {
			return "", "", fmt.Errorf("park node %s: %w", n.Name, errors.Join(err, errors.New(missing)))
		}
	}
	if err := x.unlockAll(ctx, rem.Name); err != nil {
		return "", "", err
	}
	if len(parked) == 0 {
		return v1alpha1.Failed, why.Error() + "; nothing more is written, no node carries our mark, and it holds no lock", nil
	}
	return v1alpha1.Parked, fmt.Sprintf("%v; nothing more is written, node %s is parked, cordoned on purpose, and its lock is given back", why, strings.Join(parked, ", ")), nil
}

// unreadable is an object that the API server takes and this program cannot read.
type unreadable struct {
	object *unstructured.Unstructured
	err    error
}

func (u *unreadable) Error() string {
	return fmt.Sprintf("read %s %s: %v", strings.ToLower(u.object.GetKind()), u.object.GetName(), u.err)
}

func (u *unreadable) Unwrap() error { return u.err }

// head is what can be told of it.
func (u *unreadable) head() *v1alpha1.Remediation {
	rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: u.object.GetName(), UID: u.object.GetUID(), CreationTimestamp: u.object.GetCreationTimestamp()}}
	phase, _, err := unstructured.NestedString(u.object.Object, "status", "phase")
	if err == nil {
		rem.Status.Phase = v1alpha1.Phase(phase)
	}
	return rem
}

// refuse ends a plan that cannot be read, in the fields that are known.
func (x *Executor) refuse(ctx context.Context, u *unreadable) (time.Duration, error) {
	rem := u.head()
	if rem.Status.Phase.Ended() {
		made := metav1.NewMicroTime(rem.CreationTimestamp.Time)
		rem.Status.Ended = &made
		return x.ended(ctx, rem)
	}
	if err := x.leading(ctx); err != nil {
		return 0, err
	}
	phase, message, err := x.putAside(ctx, rem, u.err)
	if err != nil {
		return 0, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.object.GetResourceVersion()},
		"status": map[string]any{"phase": phase, "message": message, "ended": metav1.NewMicroTime(x.Now())}})
	if err == nil {
		_, err = x.Dynamic.Resource(v1alpha1.Remediations).Patch(ctx, rem.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	}
	if err != nil {
		return 0, fmt.Errorf("write that plan %s cannot be read: %w", rem.Name, err)
	}
	x.metrics.ended.WithLabelValues(outcome(phase)).Inc()
	return x.Keep, nil
}
