package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/remediate/journal"
)

// pausedOperand is one of the labels that MIG manager pauses while it works
// (mig-parted pkg/mig/reconfigure/reconfigure.go).
const pausedOperand = "nvidia.com/gpu.deploy.device-plugin"

// waitManager waits until MIG manager says that it has applied a config. Right
// after the label was set its state is still that of the config before: success
// counts only together with the layout, and failed only when it is news, or stays.
func (s *relayout) waitManager(ctx context.Context, config string, e *journal.Entry) (string, error) {
	if s.DryRun {
		return "", nil
	}
	n, _, mark, err := s.ours(ctx)
	if err != nil {
		return "", err
	}
	state, since := n.Labels[nodeprobe.LabelMIGConfigState], s.Now().Sub(e.Began.Time)
	if state != mark.PriorState {
		e.Note = journal.News
	}
	switch {
	case n.Labels[nodeprobe.LabelMIGConfig] != config:
		return "", fmt.Errorf("somebody set %s=%s meanwhile", nodeprobe.LabelMIGConfig, n.Labels[nodeprobe.LabelMIGConfig])
	case state == "failed" && (e.Note == journal.News || since > s.Deadlines.Manager/10):
		return "", fmt.Errorf("MIG manager says failed for %s", config)
	case state == "pending" && n.Labels[pausedOperand] == "paused-for-mig-change" && since > s.Deadlines.Wedge:
		return "", fmt.Errorf("MIG manager is stuck: pending and paused for more than %s", s.Deadlines.Wedge)
	case state == "success":
		return s.arrived(ctx, n, config)
	}
	return fmt.Sprintf("%s is %q", nodeprobe.LabelMIGConfigState, state), nil
}

// arrived says what is missing until the layout is what the config makes. For the
// way back, whose layouts are not planned, it must not be the planned one any more:
// MIG manager may still tell of the config before.
func (s *relayout) arrived(ctx context.Context, n *corev1.Node, config string) (missing string, err error) {
	geo, err := s.geometry(ctx, s.Target.Name)
	if err != nil {
		return "", err
	}
	other := s.otherLayout(geo)
	switch {
	case config == s.how.Config && other != "":
		return other, nil
	case config != s.how.Config && other == "":
		return "the layout is still that of " + s.how.Config, nil
	}
	return unadvertised(n, geo), nil
}

// otherLayout names a GPU whose layout is not the planned one; empty when all are.
func (s *relayout) otherLayout(geo *nodeprobe.NodeGeometry) string {
	for _, g := range geo.Report.GPUs {
		have := map[string]int{}
		for _, in := range g.Instances {
			have[in.Profile]++
		}
		if want, ok := s.how.Layouts[g.Index]; ok && !maps.Equal(have, want) {
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
