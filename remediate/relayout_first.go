package remediate

import (
	"context"
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
)

// stepBack marks a node whose label was set back after it had been First.
const stepBack = "back"

// reverts says that the plan is itself a way back.
func (s *saga) reverts() bool { return s.rem.Spec.Kind == diagnosis.RevertMIGConfig }

// askFirst asks for the entry that the GPUs have, so that what is asked for next is news
// to MIG manager, which takes the last value of the label alone. That it has looked
// cannot be seen: it finds nothing to do, and says what it said before. It is given time
// for it; should it need more, the layout is waited for in vain, and that is said.
func (s *saga) askFirst(ctx context.Context, e *entry) (string, error) {
	n, now, mark, err := s.ours(ctx)
	if err != nil {
		return "", err
	}
	if n.Labels[labelConfig] == s.plan.First && mark.Step == s.configStep(s.plan.First) {
		switch state := n.Labels[labelState]; {
		case state == "failed" && mark.PriorState != "failed":
			return "", fmt.Errorf("MIG manager says failed for %s, which its GPUs have", s.plan.First)
		case state != "success":
			return fmt.Sprintf("%s is %q", labelState, state), nil
		case s.since(e) < s.Deadlines.Notice:
			return "MIG manager looks at " + s.plan.First, nil
		}
		return "", nil
	}
	if err := s.asRelied(n, now, "unschedulable"); err != nil {
		return "", err
	}
	missing, err := s.setConfig(ctx, n, mark, s.plan.First)
	if err != nil || missing != "" || s.DryRun {
		return missing, err
	}
	s.since(e) // from now on
	return "MIG manager looks at " + s.plan.First, nil
}
