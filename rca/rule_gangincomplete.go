package rca

import (
	"fmt"
)

// gangIncomplete: the pod is one of a group that is scheduled whole or not at all,
// and either not all of the group exist, or they do not fit together though this one
// would alone. Where not even this one fits, what keeps it from the nodes is told.
var gangIncomplete = PodRule{
	ID: GangIncomplete,
	Tell: func(c *Case) *finding {
		g := c.gang
		switch {
		case g == nil:
			return nil
		case !g.known:
			return c.gangUnknown()
		case g.missing() > 0:
			return &finding{c.gangCertainty(true), fmt.Sprintf("%d of %d members of its gang exist", len(g.members), g.min), c.gangEvidence()}
		case !g.short() || len(c.verdict.Feasible()) == 0:
			return nil
		}
		return &finding{c.gangCertainty(g.exact), fmt.Sprintf("%d of %d members of its gang fit together", g.fit, g.min), c.gangEvidence()}
	},
}

func (c *Case) gangCertainty(sure bool) Certainty {
	if !sure || c.world.state.Unread["Pod"] != "" {
		return Likely
	}
	return Proven
}

// gangUnknown tells of a group without its object. That of the API server itself is
// waited for (gangscheduling.go, PreEnqueue); others are their schedulers' affair, of
// which only their words are known.
func (c *Case) gangUnknown() *finding {
	if c.gangUnread() == "" && c.gang.kind.api == "scheduling.k8s.io" {
		return &finding{Likely, fmt.Sprintf("its PodGroup %s does not exist", c.gang.name), []Evidence{{c.ref(), "spec.schedulingGroup names PodGroup " + c.gang.name}}}
	}
	for _, w := range c.words() {
		if w.ofGang() {
			return &finding{Possible, "its scheduler says that the gang is not complete", []Evidence{w.evidence()}}
		}
	}
	return nil
}

// gangUnread says why the objects of the pod's group were not read.
func (c *Case) gangUnread() string { return c.world.state.Unread["PodGroup."+c.gang.kind.api] }

func (c *Case) gangEvidence() []Evidence {
	g := c.gang
	ref := "PodGroup/" + c.Pod.Namespace + "/" + g.name
	out := []Evidence{{ref, fmt.Sprintf("at least %d together (%s): %d exist, %d have a node, %d run", g.min, g.kind.api, len(g.members), g.bound, g.running)}}
	if g.missing() == 0 && g.stops != "" {
		out = append(out, Evidence{ref, fmt.Sprintf("placed one after another on a copy, %d have room; the next is stopped by: %s", g.fit, g.stops)})
	}
	return out
}
