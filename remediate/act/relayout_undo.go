package act

import (
	"context"
	"fmt"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
)

// wayBack goes back to the prior layout once, if the label was set, and out of the
// cordon. A node that will not go back is parked: left cordoned on purpose. What the node itself says counts, for the answer to a write can be
// lost; each step finds by itself whether there is something to take back.
func (s *relayout) wayBack() []journal.Step {
	out := []journal.Step{
		{ID: s.backID("config"), Text: "set " + nodeprobe.LabelMIGConfig + " back", Within: pace.Contention, Parks: true, Try: s.setBack},
		{ID: s.backID("manager"), Text: "wait for MIG manager to go back", Within: s.Deadlines.Manager, Parks: true, Try: s.waitBack},
	}
	if s.how.ConfigMap != nil {
		out = append(out, journal.Step{ID: s.backID("entry"), Text: "take entry " + s.how.Config + " out", Within: pace.Contention, Try: s.dropEntry})
	}
	out = append(out, journal.Step{ID: s.backID("release"), Text: "uncordon " + s.Target.Name, Within: pace.Contention, Parks: true, Try: s.giveBack})
	return append(out, s.unlockBack()...)
}

// parked leaves the node cordoned, with the reason on it.
func (s *relayout) parked() []journal.Step {
	return append([]journal.Step{{ID: s.backID("park"), Text: "leave " + s.Target.Name + " cordoned, with the reason on it", Within: pace.Contention, Try: s.park}}, s.unlockBack()...)
}

// setBack asks MIG manager for the prior config, unless somebody has asked for a
// third one.
func (s *relayout) setBack(ctx context.Context, _ *journal.Entry) (string, error) {
	n, mark, err := s.mine(ctx)
	if err != nil || n == nil {
		return "", err
	}
	switch is := n.Labels[nodeprobe.LabelMIGConfig]; {
	case s.reverts() && mark.Step == s.configStep(s.how.Config):
		return "", fmt.Errorf("%s=%s is what it was taken back to, and there is nothing behind that", nodeprobe.LabelMIGConfig, s.how.Config)
	case is == mark.PriorMIGConfig:
		return "", nil
	case mark.PriorMIGConfig == "":
		return "", fmt.Errorf("%s was not set before, so there is nothing to go back to", nodeprobe.LabelMIGConfig)
	case s.how.First != "" && is == s.how.First:
		mark.Step, mark.PriorState = stepBack, n.Labels[nodeprobe.LabelMIGConfigState]
		return s.write(ctx, n, nil, map[string]any{nodeprobe.LabelMIGConfig: mark.PriorMIGConfig}, mark)
	case is != s.how.Config:
		return "", fmt.Errorf("somebody set %s=%s meanwhile", nodeprobe.LabelMIGConfig, is)
	}
	return s.setConfig(ctx, n, mark, mark.PriorMIGConfig)
}

// waitBack waits for the prior layout where it was asked for.
func (s *relayout) waitBack(ctx context.Context, e *journal.Entry) (string, error) {
	n, mark, err := s.mine(ctx)
	if err != nil || n == nil || mark.Step != s.configStep(mark.PriorMIGConfig) && mark.Step != stepBack {
		return "", err
	}
	return s.waitManager(ctx, mark.PriorMIGConfig, e)
}

func (s *relayout) park(ctx context.Context, _ *journal.Entry) (string, error) {
	n, mark, err := s.mine(ctx)
	if err != nil || n == nil {
		return "", err
	}
	return s.parkedFor(ctx, n, mark, s.rem.Status.Failure)
}
