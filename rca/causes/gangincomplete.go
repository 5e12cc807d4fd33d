package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
)

// gangIncomplete: the pod is one of a group that is scheduled whole or not at all,
// and either not all of the group exist, or they do not fit together though this one
// would alone. Where not even this one fits, what keeps it from the nodes is told.
var gangIncomplete = PodRule{
	ID: diagnosis.GangIncomplete,
	Tell: func(c *Case) *finding {
		g := c.Gang
		switch {
		case g == nil:
			return nil
		case !g.Known:
			return c.gangUnknown()
		case g.Missing() > 0:
			return &finding{c.gangCertainty(true), fmt.Sprintf("%d of %d members of its gang exist", len(g.members), g.Min), c.gangEvidence()}
		case !g.Incomplete() || len(c.Verdict.Feasible()) == 0:
			return nil
		}
		return &finding{c.gangCertainty(g.exact), fmt.Sprintf("%d of %d members of its gang fit together", g.Fit, g.Min), c.gangEvidence()}
	},
}

func (c *Case) gangCertainty(sure bool) diagnosis.Certainty {
	if !sure || c.Cluster.State.Unread["Pod"] != "" {
		return diagnosis.Likely
	}
	return diagnosis.Proven
}

// gangUnknown tells of a group without its object. That of the API server itself is
// waited for (gangscheduling.go, PreEnqueue); others are their schedulers' affair, of
// which only their words are known.
func (c *Case) gangUnknown() *finding {
	if c.GangUnread() == "" && c.Gang.Kind.API == "scheduling.k8s.io" {
		return &finding{diagnosis.Likely, fmt.Sprintf("its PodGroup %s does not exist", c.Gang.Name), []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "spec.schedulingGroup names PodGroup "+c.Gang.Name, c.ofPod(diagnosis.That("spec.schedulingGroup", "", diagnosis.Contains, c.Gang.Name))...)}}
	}
	for _, w := range c.Queue.Words() {
		if w.OfGang() {
			return &finding{diagnosis.Possible, "its scheduler says that the gang is not complete", []diagnosis.Evidence{w.Evidence()}}
		}
	}
	return nil
}

// GangUnread says why the objects of the pod's group were not read.
func (c *Case) GangUnread() string { return c.Cluster.State.Unread["PodGroup."+c.Gang.Kind.API] }

func (c *Case) gangEvidence() []diagnosis.Evidence {
	g := c.Gang
	ref := "PodGroup/" + c.Pod.Namespace + "/" + g.Name
	out := []diagnosis.Evidence{{Ref: ref, Fact: fmt.Sprintf("at least %d together (%s): %d exist, %d have a node, %d run", g.Min, g.Kind.API, len(g.members), g.bound, g.running)}}
	if g.Missing() == 0 && g.stops != "" {
		out = append(out, diagnosis.Evidence{Ref: ref, Fact: fmt.Sprintf("placed one after another on a copy, %d have room; the next is stopped by: %s", g.Fit, g.stops)})
	}
	return out
}
