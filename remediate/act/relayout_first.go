package act

import (
	"context"
	"fmt"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
)

// stepBack marks a node whose label was set back after it had been First.
const stepBack = "back"

// reverts says that the plan is itself a way back.
func (s *relayout) reverts() bool { return s.rem.Spec.Kind == diagnosis.RevertMIGConfig }

// askFirst asks for the entry that the GPUs have, so that what is asked for next is news
// to MIG manager, which takes the last value of the label alone. That it has looked
// cannot be seen: it finds nothing to do, and says what it said before. It is given time
// for it; should it need more, the layout is waited for in vain, and that is said.
func (s *relayout) askFirst(ctx context.Context, e *journal.Entry) (string, error) {
	n, now, mark, err := s.ours(ctx)
	if err != nil {
		return "", err
	}
	if n.Labels[nodeprobe.LabelMIGConfig] == s.how.First && mark.Step == s.configStep(s.how.First) {
		switch state := n.Labels[nodeprobe.LabelMIGConfigState]; {
		case state == "failed" && mark.PriorState != "failed":
			return "", fmt.Errorf("MIG manager says failed for %s, which its GPUs have", s.how.First)
		case state != "success":
			return fmt.Sprintf("%s is %q", nodeprobe.LabelMIGConfigState, state), nil
		case e.Since(s.Now()) < s.Deadlines.Notice:
			return "MIG manager looks at " + s.how.First, nil
		}
		return "", nil
	}
	if err := s.asRelied(n, now, "unschedulable"); err != nil {
		return "", err
	}
	missing, err := s.setConfig(ctx, n, mark, s.how.First)
	if err != nil || missing != "" || s.DryRun {
		return missing, err
	}
	e.Since(s.Now()) // from now on
	return "MIG manager looks at " + s.how.First, nil
}
