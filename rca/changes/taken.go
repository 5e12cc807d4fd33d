package changes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/view"
)

// OfTaken lists what can be done about a node that unpend, or nobody knows who, has taken:
// no plan touches it. A person mends what is parked or quarantined and says so, or takes
// away a mark that is not ours; a plan under way ends. That a quarantined node is opened
// by a plan is for one whose GPUs are reported healthy, and lacks nothing else: open.
func (c *Bench) OfTaken(n *view.Node, shortages []diagnosis.CauseID) []edit.Change {
	mark := n.Operation()
	switch {
	case mark.Quarantined != "" && n.SickText() == "" && !n.Unreadable && len(shortages) == 0:
		return []edit.Change{mend.Uncordon(n, nil)}
	case mark.Plan != "" && !mark.Kept():
		return []edit.Change{{Kind: diagnosis.Wait, Cause: diagnosis.NodeCordoned, Manual: true, Risk: diagnosis.NoRisk,
			Title: "wait until unpend's plan " + view.Cut(mark.Plan, 8) + " for " + n.Name + " has ended", Until: "it has ended",
			Untestable: "what the plan makes of " + n.Name + " is not known before it has ended",
			Commands:   []string{"kubectl get remediation " + mark.Plan + " -w", release(n) + "  # refused while somebody works on it"}}}
	}
	out := []edit.Change{edit.LookAt(diagnosis.NodeCordoned, "see to "+n.Name+", which is "+n.Taken(), "nothing is planned with "+n.Name+" before a person has released it",
		"kubectl describe node "+n.Name, release(n))}
	for _, ch := range c.repairs(n, shortages, false) {
		if ch.Manual {
			out = append(out, ch)
		}
	}
	return out
}

// release is the command that gives a node back which nobody works on any more.
func release(n *view.Node) string { return "kubectl unpend release " + n.Name }
