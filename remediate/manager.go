package remediate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// operands are the labels that MIG manager pauses while it works (mig-parted
// pkg/mig/reconfigure/reconfigure.go).
const pausedOperand = "nvidia.com/gpu.deploy.device-plugin"

// waitManager waits until MIG manager says that it has applied a config. Right
// after the label was set its state is still that of the config before, so
// success counts only together with the geometry.
func (s *saga) waitManager(ctx context.Context, config string) error {
	if s.DryRun {
		return nil
	}
	began := s.Now()
	return s.until(ctx, s.Deadlines.Manager, func(ctx context.Context) (string, error) {
		n, err := s.get(ctx)
		if err != nil {
			return "", err
		}
		state := n.Labels[labelState]
		switch {
		case n.Labels[labelConfig] != config:
			return "", fmt.Errorf("somebody set %s=%s meanwhile", labelConfig, n.Labels[labelConfig])
		case state == "success" && s.arrived(ctx, config):
			return "", nil
		case state == "failed" && s.Now().Sub(began) > 2*s.Poll:
			return "", fmt.Errorf("MIG manager says failed for %s", config)
		case state == "pending" && n.Labels[pausedOperand] == "paused-for-mig-change" && s.Now().Sub(began) > s.Deadlines.Wedge:
			return "", fmt.Errorf("MIG manager is stuck: pending and paused for more than %s", s.Deadlines.Wedge)
		}
		return fmt.Sprintf("%s is %q", labelState, state), nil
	})
}

// arrived says whether the geometry is what the config makes; for the way back,
// whose layouts are not planned, MIG manager's word has to do.
func (s *saga) arrived(ctx context.Context, config string) bool {
	return config != s.plan.Config || s.verify(ctx) == nil
}

// verify holds the geometry, and what the node advertises, to the plan.
func (s *saga) verify(ctx context.Context) error {
	if s.DryRun {
		return nil
	}
	geo, err := s.geometry(ctx)
	if err != nil {
		return err
	}
	total := map[string]int{}
	for _, g := range geo.Report.GPUs {
		have := map[string]int{}
		for _, in := range g.Instances {
			have[in.Profile]++
			total[in.Profile]++
		}
		if want, ok := s.plan.Layouts[g.Index]; ok && !maps.Equal(have, want) {
			return fmt.Errorf("GPU %d has %v, the plan is %v", g.Index, have, want)
		}
	}
	n, err := s.get(ctx)
	if err != nil {
		return err
	}
	for _, profile := range slices.Sorted(maps.Keys(total)) {
		q := n.Status.Allocatable[resourceOf(profile)]
		if q.Value() != int64(total[profile]) {
			return fmt.Errorf("the node advertises %d of %s, it has %d", q.Value(), profile, total[profile])
		}
	}
	return nil
}

// release takes our annotation off, and our cordon if the node was schedulable
// before: a cordon that a person made stays.
func (s *saga) release(ctx context.Context) error {
	var spec map[string]any
	if !s.own.PriorUnschedulable {
		spec = map[string]any{"unschedulable": nil}
	}
	if err := s.edit(ctx, nil, spec, nil, nil); err != nil {
		return fmt.Errorf("uncordon %s: %w", s.node, err)
	}
	s.cordoned = false
	return nil
}

// undo goes back: to the prior layout once if the label was set, and out of the
// cordon. A node that will not go back is parked: left cordoned on purpose, with
// the reason on it.
func (s *saga) undo(ctx context.Context) error {
	if !s.cordoned {
		return nil
	}
	if s.labelled {
		err := s.setConfig(ctx, s.own.PriorMIGConfig)
		if err == nil {
			err = s.waitManager(ctx, s.own.PriorMIGConfig)
		}
		if err != nil {
			return s.park(ctx, err)
		}
	}
	return s.release(ctx)
}

func (s *saga) park(ctx context.Context, why error) error {
	s.own.Step, s.own.Parked = "parked", why.Error()
	err := s.edit(ctx, func(*corev1.Node) error { return nil }, nil, nil, &s.own)
	return errors.Join(fmt.Errorf("node %s is parked, cordoned on purpose: %w", s.node, why), err)
}
