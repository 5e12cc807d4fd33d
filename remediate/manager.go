package remediate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// pausedOperand is one of the labels that MIG manager pauses while it works
// (mig-parted pkg/mig/reconfigure/reconfigure.go).
const pausedOperand = "nvidia.com/gpu.deploy.device-plugin"

// waitManager waits until MIG manager says that it has applied a config. Right
// after the label was set its state is still that of the config before: success
// counts only together with the layout, and failed only when it is news, or stays.
func (s *saga) waitManager(ctx context.Context, config string) error {
	if s.DryRun {
		return nil
	}
	began, news := s.Now(), false
	return s.until(ctx, s.Deadlines.Manager, func(ctx context.Context) (string, error) {
		n, err := s.node(ctx, s.target)
		if err != nil {
			return "", err
		}
		state, since := n.Labels[labelState], s.Now().Sub(began)
		news = news || state != s.state
		switch {
		case n.Labels[labelConfig] != config:
			return "", fmt.Errorf("somebody set %s=%s meanwhile", labelConfig, n.Labels[labelConfig])
		case state == "failed" && (news || since > s.Deadlines.Manager/10):
			return "", fmt.Errorf("MIG manager says failed for %s", config)
		case state == "pending" && n.Labels[pausedOperand] == "paused-for-mig-change" && since > s.Deadlines.Wedge:
			return "", fmt.Errorf("MIG manager is stuck: pending and paused for more than %s", s.Deadlines.Wedge)
		case state == "success":
			missing, err := s.arrived(ctx, n, config)
			return missing, err
		}
		return fmt.Sprintf("%s is %q", labelState, state), nil
	})
}

// arrived says what is missing until the layout is what the config makes. For the
// way back, whose layouts are not planned, it must not be the planned one any more:
// MIG manager may still tell of the config before.
func (s *saga) arrived(ctx context.Context, n *corev1.Node, config string) (missing string, err error) {
	geo, err := s.geometry(ctx, s.target.Name)
	if err != nil {
		return "", err
	}
	other := s.otherLayout(geo)
	switch {
	case config == s.plan.Config && other != "":
		return other, nil
	case config != s.plan.Config && other == "":
		return "the layout is still that of " + s.plan.Config, nil
	}
	return unadvertised(n, geo), nil
}

// otherLayout names a GPU whose layout is not the planned one; empty when all are.
func (s *saga) otherLayout(geo *nodeprobe.NodeGeometry) string {
	for _, g := range geo.Report.GPUs {
		have := map[string]int{}
		for _, in := range g.Instances {
			have[in.Profile]++
		}
		if want, ok := s.plan.Layouts[g.Index]; ok && !maps.Equal(have, want) {
			return fmt.Sprintf("GPU %d has %v, the plan is %v", g.Index, have, want)
		}
	}
	return ""
}

// unadvertised names a profile of which the node does not advertise as many as it
// has; empty when it does of all.
func unadvertised(n *corev1.Node, geo *nodeprobe.NodeGeometry) string {
	total := map[string]int{}
	for _, g := range geo.Report.GPUs {
		for _, in := range g.Instances {
			total[in.Profile]++
		}
	}
	for _, profile := range slices.Sorted(maps.Keys(total)) {
		q := n.Status.Allocatable[resourceOf(profile)]
		if q.Value() != int64(total[profile]) {
			return fmt.Sprintf("the node advertises %d of %s, it has %d", q.Value(), profile, total[profile])
		}
	}
	return ""
}

// resourceOf is the device plugin's name for a profile.
func resourceOf(profile string) corev1.ResourceName {
	return corev1.ResourceName("nvidia.com/mig-" + strings.ReplaceAll(profile, "+", "."))
}

// verify holds the layout, and what the node advertises, to the plan.
func (s *saga) verify(ctx context.Context) error {
	if s.DryRun {
		return nil
	}
	n, err := s.node(ctx, s.target)
	if err != nil {
		return err
	}
	missing, err := s.arrived(ctx, n, s.plan.Config)
	if err == nil && missing != "" {
		err = errors.New(missing)
	}
	return err
}

// release takes our mark off, and our cordon if the node was schedulable before: a
// cordon that a person made stays.
func (s *saga) release(ctx context.Context) error {
	var spec map[string]any
	if !s.own.PriorUnschedulable {
		spec = map[string]any{"unschedulable": nil}
	}
	if err := s.edit(ctx, nil, spec, nil, nil); err != nil {
		return fmt.Errorf("uncordon %s: %w", s.target.Name, err)
	}
	s.wrote = false
	return nil
}

// undo goes back: to the prior layout once if the label was set, and out of the
// cordon. A node that will not go back is parked: left cordoned on purpose, with
// the reason on it. What the node itself says counts, for the answer to a write can
// be lost.
func (s *saga) undo(ctx context.Context) error {
	var n *corev1.Node
	err := s.until(ctx, contention, func(ctx context.Context) (string, error) {
		var err error
		n, err = s.node(ctx, s.target)
		return "", err
	})
	switch {
	case errors.Is(err, ErrStale):
		return nil // the node is gone, and with it what was begun
	case err != nil:
		return fmt.Errorf("node %s could not be taken back: %w", s.target.Name, err)
	case !s.ours(n):
		return nil
	}
	s.wrote = true
	if n.Labels[labelConfig] != s.own.PriorMIGConfig {
		if err := s.goBack(ctx); err != nil {
			return s.park(ctx, err)
		}
	}
	return errors.Join(s.dropEntry(ctx), s.release(ctx))
}

// goBack asks MIG manager for the prior config, unless somebody has asked for a
// third one.
func (s *saga) goBack(ctx context.Context) error {
	if s.own.PriorMIGConfig == "" {
		return fmt.Errorf("%s was not set before, so there is nothing to go back to", labelConfig)
	}
	err := s.setConfig(ctx, s.own.PriorMIGConfig, func(n *corev1.Node, _ map[string]string) error {
		if is := n.Labels[labelConfig]; is != s.plan.Config && is != s.own.PriorMIGConfig {
			return fmt.Errorf("somebody set %s=%s meanwhile", labelConfig, is)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.waitManager(ctx, s.own.PriorMIGConfig)
}

func (s *saga) park(ctx context.Context, why error) error {
	s.own.Step, s.own.Parked = "parked", why.Error()
	err := s.edit(ctx, nil, nil, nil, &s.own)
	return errors.Join(fmt.Errorf("node %s is parked, cordoned on purpose: %w", s.target.Name, why), err)
}
