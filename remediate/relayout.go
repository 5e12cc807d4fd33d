package remediate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/unpend/unpend/rca"
)

const (
	fieldManager = "unpend"
	// annotation marks a node that is being worked on, and keeps what it was
	// before: it is written and removed in the same patch as the cordon.
	annotation  = "unpend.dev/operation"
	labelConfig = "nvidia.com/mig.config"
	labelState  = "nvidia.com/mig.config.state"
)

// ownership is the annotation's content.
type ownership struct {
	Op                 string    `json:"op"` // the plan
	ID                 types.UID `json:"id"` // tells one carrying out of a plan from another
	PriorUnschedulable bool      `json:"priorUnschedulable"`
	PriorMIGConfig     string    `json:"priorMigConfig"`
	Step               string    `json:"step"`
	Parked             string    `json:"parked,omitempty"` // why the node was left cordoned
}

// saga re-makes GPUs of one node.
type saga struct {
	*runner
	target  rca.Target
	plan    *rca.Relayout
	relies  map[string]string
	own     ownership
	wrote   bool   // the node is marked and cordoned, as far as we were told
	entered bool   // the custom entry is in the ConfigMap, by us
	state   string // MIG manager's, when it was last given a config
}

func (r *runner) relayout(ctx context.Context, a rca.Action) error {
	s := &saga{runner: r, target: a.Target, plan: a.Relayout, relies: a.Relies}
	err := s.run(ctx)
	if err == nil {
		r.remade = a.Target
	}
	if err == nil || r.DryRun {
		return err
	}
	// What was begun is taken back even when the caller has gone away.
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Deadlines.Manager+5*contention)
	defer cancel()
	return errors.Join(err, s.undo(undo))
}

func (s *saga) run(ctx context.Context) error {
	if err := s.step("cordon "+s.target.Name, func() error {
		if err := s.cordon(ctx); err != nil {
			return err
		}
		return s.settle(ctx)
	}); err != nil {
		return err
	}
	for _, v := range s.plan.Victims {
		if err := s.step(evictText(v), func() error { return s.evict(ctx, v) }); err != nil {
			return err
		}
	}
	if err := s.step("wait until nobody holds the GPUs", func() error { return s.waitEmpty(ctx) }); err != nil {
		return err
	}
	if s.plan.ConfigMap != nil {
		if err := s.step("add entry "+s.plan.Config, func() error { return s.writeEntry(ctx) }); err != nil {
			return err
		}
	}
	if err := s.step("set "+labelConfig+"="+s.plan.Config, func() error { return s.setConfig(ctx, s.plan.Config, s.asPlanned) }); err != nil {
		return err
	}
	if err := s.step("wait for MIG manager", func() error { return s.waitManager(ctx, s.plan.Config) }); err != nil {
		return err
	}
	return s.step("verify the layout and uncordon "+s.target.Name, func() error {
		if err := s.verify(ctx); err != nil {
			return err
		}
		return s.release(ctx)
	})
}

// settle gives the scheduler time to hear of the cordon: what it chose before, it
// still binds, and the pod that replaces a victim would come back to the node.
func (s *saga) settle(ctx context.Context) error {
	if s.DryRun {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.Deadlines.Settle):
		return nil
	}
}

// write patches the node on the version it was read at: spec, labels and our
// annotation in one write.
func (s *saga) write(ctx context.Context, n *corev1.Node, spec, labels map[string]any, own *ownership) error {
	var note any
	if own != nil {
		text, err := json.Marshal(own)
		if err != nil {
			return fmt.Errorf("write the annotation: %w", err)
		}
		note = string(text)
	}
	body := map[string]any{"metadata": map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{annotation: note}}}
	if labels != nil {
		body["metadata"].(map[string]any)["labels"] = labels
	}
	if spec != nil {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("build the patch: %w", err)
	}
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: s.dryRun()})
	return err
}

// edit reads the node and writes it, again when something else (the kubelet's
// status, MIG manager's labels) was written in between. check may refuse what it
// reads. After the cordon, nothing is written to a node that is no longer ours.
func (s *saga) edit(ctx context.Context, check func(*corev1.Node, map[string]string) error, spec, labels map[string]any, own *ownership) error {
	return s.until(ctx, contention, func(ctx context.Context) (string, error) {
		n, now, err := s.look(ctx, s.target)
		if err != nil {
			return "", err
		}
		if s.wrote && !s.ours(n) && !s.DryRun {
			return "", fmt.Errorf("%w: node %s is no longer marked as ours; it is left as it is", ErrStale, n.Name)
		}
		if check != nil {
			if err := check(n, now); err != nil {
				return "", err
			}
		}
		if err = s.write(ctx, n, spec, labels, own); apierrors.IsConflict(err) {
			return "the node is being written by others", nil
		}
		return "", err
	})
}

// ours says whether the node carries the mark of this operation.
func (s *saga) ours(n *corev1.Node) bool {
	var mark ownership
	return json.Unmarshal([]byte(n.Annotations[annotation]), &mark) == nil && mark.ID == s.own.ID
}

// cordon closes and marks the node in one write, if all is as the plan relies on.
func (s *saga) cordon(ctx context.Context) error {
	s.own = ownership{Op: s.plan.Config + "/" + s.runner.plan, Step: "cordon", ID: uuid.NewUUID()}
	err := s.edit(ctx, func(n *corev1.Node, now map[string]string) error {
		if other := n.Annotations[annotation]; other != "" && !s.ours(n) { // ours when an answer was lost
			return fmt.Errorf("%w: node %s is being worked on already: %s", ErrRefused, n.Name, other)
		} else if other != "" {
			return nil
		}
		s.own.PriorUnschedulable, s.own.PriorMIGConfig = n.Spec.Unschedulable, n.Labels[labelConfig]
		return drift(n.Name, s.relies, now)
	}, map[string]any{"unschedulable": true}, nil, &s.own)
	s.wrote = err == nil
	return err
}

// asPlanned holds the node, once its victims have left and before MIG manager is
// called, to what the plan relies on; our own cordon is the only thing that may be
// new.
func (s *saga) asPlanned(n *corev1.Node, now map[string]string) error {
	if s.DryRun {
		return nil
	}
	if !n.Spec.Unschedulable {
		return fmt.Errorf("%w: somebody opened node %s meanwhile", ErrStale, n.Name)
	}
	if held := s.held(now); held != "" {
		return fmt.Errorf("%w: %s", ErrStale, held)
	}
	return drift(n.Name, s.relies, now, "unschedulable")
}

// held says who holds something of the GPUs that are re-made; empty when nobody
// does.
func (s *saga) held(now map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		for _, gpu := range s.plan.GPUs {
			if !strings.HasPrefix(key, rca.HolderPrefix(gpu)) {
				continue
			}
			if now[key] == rca.UnknownHolder {
				return fmt.Sprintf("who holds GPU %d cannot be told", gpu)
			}
			return fmt.Sprintf("GPU %d is held by %s", gpu, now[key])
		}
	}
	return ""
}

// waitEmpty waits until the victims have left and the probe sees nobody on the
// GPUs that are re-made.
func (s *saga) waitEmpty(ctx context.Context) error {
	if s.DryRun {
		return nil
	}
	if err := s.waitGone(ctx, s.plan.Victims); err != nil {
		return err
	}
	return s.until(ctx, s.Deadlines.Leave, func(ctx context.Context) (string, error) {
		_, now, err := s.look(ctx, s.target)
		return s.held(now), err
	})
}
