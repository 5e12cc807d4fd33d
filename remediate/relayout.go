package remediate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
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
	Op                 string `json:"op"` // the plan
	PriorUnschedulable bool   `json:"priorUnschedulable"`
	PriorMIGConfig     string `json:"priorMigConfig"`
	Step               string `json:"step"`
	Parked             string `json:"parked,omitempty"` // why the node was left cordoned
}

// saga re-makes GPUs of one node.
type saga struct {
	*runner
	node     string
	uid      string
	plan     *rca.Relayout
	own      ownership
	cordoned bool
	labelled bool
}

func (r *runner) relayout(ctx context.Context, a rca.Action) error {
	s := &saga{runner: r, node: a.Target.Name, uid: a.Target.UID, plan: a.Relayout}
	err := s.run(ctx)
	if err == nil || r.DryRun {
		return err
	}
	// What was begun is taken back even when the caller has gone away.
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Deadlines.Manager+time.Minute)
	defer cancel()
	return errors.Join(err, s.undo(undo))
}

func (s *saga) run(ctx context.Context) error {
	if err := s.step("cordon "+s.node, func() error { return s.cordon(ctx) }); err != nil {
		return err
	}
	for _, v := range s.plan.Victims {
		if err := s.evictStep(ctx, v); err != nil {
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
	if err := s.step("set "+labelConfig+"="+s.plan.Config, func() error { return s.setConfig(ctx, s.plan.Config) }); err != nil {
		return err
	}
	if err := s.step("wait for MIG manager", func() error { return s.waitManager(ctx, s.plan.Config) }); err != nil {
		return err
	}
	if err := s.step("verify the layout and uncordon "+s.node, func() error {
		if err := s.verify(ctx); err != nil {
			return err
		}
		return s.release(ctx)
	}); err != nil {
		return err
	}
	return nil
}

// get reads the node and holds it to the plan's uid.
func (s *saga) get(ctx context.Context) (*corev1.Node, error) {
	n, err := s.Client.CoreV1().Nodes().Get(ctx, s.node, metav1.GetOptions{})
	if err != nil {
		return nil, stale(err, rca.Target{Kind: "Node", Name: s.node})
	}
	if string(n.UID) != s.uid {
		return nil, fmt.Errorf("%w: node %s was replaced", ErrStale, s.node)
	}
	return n, nil
}

// write patches the node on the version it was read at: spec, labels and our
// annotation in one write.
func (s *saga) write(ctx context.Context, version string, spec, labels map[string]any, own *ownership) error {
	var note any
	if own != nil {
		text, err := json.Marshal(own)
		if err != nil {
			return fmt.Errorf("write the annotation: %w", err)
		}
		note = string(text)
	}
	body := map[string]any{"metadata": map[string]any{"uid": s.uid, "resourceVersion": version, "annotations": map[string]any{annotation: note}}}
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
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, s.node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: s.dryRun()})
	return err
}

// edit reads the node and writes it, again when something else (the kubelet's
// status, MIG manager's labels) was written in between. check may refuse what it
// reads.
func (s *saga) edit(ctx context.Context, check func(*corev1.Node) error, spec, labels map[string]any, own *ownership) error {
	return s.until(ctx, time.Minute, func(ctx context.Context) (string, error) {
		n, err := s.get(ctx)
		if err != nil {
			return "", err
		}
		if check != nil {
			if err := check(n); err != nil {
				return "", err
			}
		}
		err = s.write(ctx, n.ResourceVersion, spec, labels, own)
		if apierrors.IsConflict(err) {
			return "the node is being written by others", nil
		}
		return "", err
	})
}

func (s *saga) cordon(ctx context.Context) error {
	n, err := s.get(ctx)
	if err != nil {
		return err
	}
	if other := n.Annotations[annotation]; other != "" {
		return fmt.Errorf("%w: node %s is being worked on already: %s", ErrRefused, s.node, other)
	}
	s.own = ownership{Op: s.plan.Config + "/" + s.runner.plan, PriorUnschedulable: n.Spec.Unschedulable, PriorMIGConfig: n.Labels[labelConfig], Step: "cordon"}
	if err := s.write(ctx, n.ResourceVersion, map[string]any{"unschedulable": true}, nil, &s.own); err != nil {
		return stale(err, rca.Target{Kind: "Node", Name: s.node})
	}
	s.cordoned = true
	return nil
}

// report reads the node's geometry; nil when there is none.
func (s *saga) geometry(ctx context.Context) (*nodeprobe.NodeGeometry, error) {
	u, err := s.Dynamic.Resource(nodeprobe.Resource).Get(ctx, s.node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the geometry of %s: %w", s.node, err)
	}
	var geo nodeprobe.NodeGeometry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &geo); err != nil {
		return nil, fmt.Errorf("read the geometry of %s: %w", s.node, err)
	}
	return &geo, nil
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
		geo, err := s.geometry(ctx)
		if err != nil {
			return "", err
		}
		for _, g := range geo.Report.GPUs {
			if !slices.Contains(s.plan.GPUs, g.Index) {
				continue
			}
			for _, in := range g.Instances {
				if in.Holder != nil {
					return fmt.Sprintf("GPU %d is still held by %s/%s", g.Index, in.Holder.Namespace, in.Holder.Pod), nil
				}
			}
		}
		return "", nil
	})
}

// writeEntry adds the custom entry to the ConfigMap, beside those that are there.
func (s *saga) writeEntry(ctx context.Context) error {
	t := s.plan.ConfigMap
	maps := s.Client.CoreV1().ConfigMaps(t.Namespace)
	cm, err := maps.Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return stale(err, *t)
	}
	if string(cm.UID) != t.UID {
		return fmt.Errorf("%w: configmap %s/%s was replaced", ErrStale, t.Namespace, t.Name)
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(cm.Data["config.yaml"]), &config); err != nil {
		return fmt.Errorf("read config.yaml of configmap %s/%s: %w", t.Namespace, t.Name, err)
	}
	entries, ok := config["mig-configs"].(map[string]any)
	if !ok {
		return fmt.Errorf("configmap %s/%s: config.yaml has no mig-configs", t.Namespace, t.Name)
	}
	var entry any
	if err := json.Unmarshal(s.plan.Entry, &entry); err != nil {
		return fmt.Errorf("read the entry: %w", err)
	}
	entries[s.plan.Config] = entry
	text, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("write config.yaml: %w", err)
	}
	cm = cm.DeepCopy()
	cm.Data["config.yaml"] = string(text)
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: s.dryRun()})
	return stale(err, *t)
}

func (s *saga) setConfig(ctx context.Context, config string) error {
	s.own.Step = "config " + config
	err := s.edit(ctx, nil, nil, map[string]any{labelConfig: config}, &s.own)
	s.labelled = s.labelled || err == nil && !s.DryRun
	return err
}
