package remediate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// sweepAgain is how soon a plan that is to be forgotten is looked at again whose entry is
// still in use, or must not be taken out now.
const sweepAgain = time.Hour

// swept takes the entries out that a plan which is about to be forgotten has written into
// a team's layouts, where nobody needs them any more, and says whether none is left: as
// long as one is, the plan is what tells whose it is.
func (x *Executor) swept(ctx context.Context, rem *v1alpha1.Remediation) (bool, error) {
	r := &runner{Deps: x.Deps, rem: rem}
	for i, a := range r.actions() {
		if a.Relayout == nil || a.Relayout.ConfigMap == nil {
			continue
		}
		s := r.saga(i, a)
		if !slices.ContainsFunc(rem.Status.Journal, func(e v1alpha1.Entry) bool { return e.Step == s.id("entry") }) {
			continue // it never came to that
		}
		if done, err := x.sweep(ctx, s); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// sweep takes out one entry, if it is there as we wrote it, to the byte.
func (x *Executor) sweep(ctx context.Context, s *saga) (done bool, err error) {
	if err := x.leading(ctx); err != nil {
		return false, err
	}
	c, err := s.partedConfig(ctx)
	if errors.Is(err, ErrStale) {
		return true, nil // the ConfigMap is gone, or another
	}
	if errors.Is(err, errLayouts) {
		x.Logger.WarnContext(ctx, "an entry is left where it is", "entry", s.plan.Config, "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if is, err := c.asWritten(s); err != nil || !is {
		return err == nil, err
	}
	if needed, err := x.needed(ctx, s.plan.Config); err != nil || needed {
		return false, err
	}
	if err := x.halted(ctx); errors.Is(err, ErrHalted) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	now := metav1.NewMicroTime(x.Now())
	e := &v1alpha1.Entry{Step: "sweep/" + s.plan.Config, Text: fmt.Sprintf("take entry %s out of configmap %s/%s: no node asks for it any more", s.plan.Config, c.of.Namespace, c.of.Name), Began: now, Deadline: now}
	if err := s.observe(ctx, e, audit.Begun); err != nil {
		return false, err
	}
	c.remove(s.plan.Config)
	missing, err := s.writeConfig(ctx, c)
	e.Ended = &now
	if why := errors.Join(err, errors.New(missing)); err != nil || missing != "" {
		e.Error = why.Error()
		s.remark(ctx, e, audit.Failed)
		return false, why
	}
	s.remark(ctx, e, audit.Done)
	return true, nil
}

// needed says whether a node asks for an entry, or would on its way back, or a plan that
// has not ended is about it.
func (x *Executor) needed(ctx context.Context, config string) (bool, error) {
	nodes, err := x.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		mark, err := v1alpha1.OperationOn(n)
		if err != nil || n.Labels[labelConfig] == config || mark != nil && mark.PriorMIGConfig == config {
			return true, nil // what cannot be read may name it
		}
	}
	plans, err := x.store.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list plans: %w", err)
	}
	return slices.ContainsFunc(plans, func(r v1alpha1.Remediation) bool {
		return !r.Status.Phase.Ended() && slices.ContainsFunc(r.Spec.Actions, func(a diagnosis.Action) bool {
			return a.Relayout != nil && (a.Relayout.Config == config || a.Relayout.First == config)
		})
	}), nil
}

// asWritten says whether the entry stands in the layouts as we write it, without a comment
// of anybody's.
func (c *partedConfig) asWritten(s *saga) (bool, error) {
	want, err := s.wantedEntry()
	if err != nil {
		return false, err
	}
	i := c.at(s.plan.Config)
	if i < 0 {
		return false, nil
	}
	key, value, err := newEntry(s.plan.Config, want)
	if err != nil {
		return false, err
	}
	ours, err := entryText(key, value)
	if err != nil {
		return false, err
	}
	is, err := entryText(c.entries.Content[i], c.entries.Content[i+1])
	return bytes.Equal(is, ours), err
}

func entryText(key, value *yaml.Node) ([]byte, error) {
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}})
	if err != nil {
		return nil, fmt.Errorf("write an entry: %w", err)
	}
	return text, nil
}
