package remediate

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// wayBack goes back to the prior layout once, if the label was set, and out of the
// cordon. A node that will not go back is parked: left cordoned on purpose, with the
// reason on it. What the node itself says counts, for the answer to a write can be
// lost; each step finds by itself whether there is something to take back.
func (s *saga) wayBack() []step {
	id := func(name string) string { return "undo/" + s.id(name) }
	out := []step{
		{id: id("config"), text: "set " + labelConfig + " back", within: contention, parks: true, try: s.setBack},
		{id: id("manager"), text: "wait for MIG manager to go back", within: s.Deadlines.Manager, parks: true, try: s.waitBack},
		{id: id("park"), text: "leave " + s.target.Name + " cordoned, with the reason on it", within: contention, try: s.park},
	}
	if s.plan.ConfigMap != nil {
		out = append(out, step{id: id("entry"), text: "take entry " + s.plan.Config + " out", within: contention, try: s.dropEntry})
	}
	out = append(out, step{id: id("release"), text: "uncordon " + s.target.Name, within: contention, parks: true, try: s.giveBack})
	if s.Locks != "" {
		out = append(out, step{id: id("unlock"), text: "unlock " + s.target.Name, within: contention, try: s.unlock})
	}
	return out
}

// mine reads the node for the way back; nil when there is nothing of ours on it: it
// is gone, or not marked by us.
func (s *saga) mine(ctx context.Context) (*corev1.Node, *v1alpha1.Operation, error) {
	n, err := s.node(ctx, s.target)
	if errors.Is(err, ErrStale) {
		return nil, nil, nil // with the node went what was begun
	}
	if err != nil {
		return nil, nil, fmt.Errorf("node %s could not be taken back: %w", s.target.Name, err)
	}
	if mark := s.markOf(n); mark != nil {
		return n, mark, nil
	}
	return nil, nil, nil
}

// setBack asks MIG manager for the prior config, unless somebody has asked for a
// third one.
func (s *saga) setBack(ctx context.Context, _ *entry) (string, error) {
	n, mark, err := s.mine(ctx)
	if err != nil || n == nil {
		return "", err
	}
	switch is := n.Labels[labelConfig]; {
	case s.reverts() && mark.Step == s.configStep(s.plan.Config):
		return "", fmt.Errorf("%s=%s is what it was taken back to, and there is nothing behind that", labelConfig, s.plan.Config)
	case is == mark.PriorMIGConfig:
		return "", nil
	case mark.PriorMIGConfig == "":
		return "", fmt.Errorf("%s was not set before, so there is nothing to go back to", labelConfig)
	case s.plan.First != "" && is == s.plan.First:
		mark.Step, mark.PriorState = stepBack, n.Labels[labelState]
		return s.write(ctx, n, nil, map[string]any{labelConfig: mark.PriorMIGConfig}, mark)
	case is != s.plan.Config:
		return "", fmt.Errorf("somebody set %s=%s meanwhile", labelConfig, is)
	}
	return s.setConfig(ctx, n, mark, mark.PriorMIGConfig)
}

// waitBack waits for the prior layout where it was asked for.
func (s *saga) waitBack(ctx context.Context, e *entry) (string, error) {
	n, mark, err := s.mine(ctx)
	if err != nil || n == nil || mark.Step != s.configStep(mark.PriorMIGConfig) && mark.Step != stepBack {
		return "", err
	}
	return s.waitManager(ctx, mark.PriorMIGConfig, e)
}

func (s *saga) giveBack(ctx context.Context, _ *entry) (string, error) {
	if n, _, err := s.mine(ctx); err != nil || n == nil {
		return "", err
	}
	return s.release(ctx, false)
}

func (s *saga) park(ctx context.Context, _ *entry) (string, error) {
	n, mark, err := s.mine(ctx)
	if err != nil || n == nil {
		return "", err
	}
	mark.Step, mark.Parked = "parked", s.rem.Status.Failure
	return s.write(ctx, n, nil, nil, mark)
}
