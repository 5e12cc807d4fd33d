package rca

import (
	"context"
	"fmt"

	"github.com/unpend/unpend/rca/whatif"
)

// measure asks what the holders of GPUs do with them, if the pod waits for GPUs that are
// held.
func (c *Case) measure(ctx context.Context, ask Measure) {
	c.held = c.waitsForHeld()
	if c.held && c.world.measure(ctx, ask) {
		c.forget()
	}
}

// waitsForHeld says whether a node has enough of the GPUs that the pod asks for,
// were it not for those who hold them.
func (c *Case) waitsForHeld() bool {
	for _, v := range c.verdict.Nodes {
		n := c.node(v.Node)
		for _, b := range v.Blockers {
			if _, ok := c.heldShort(n, b); ok {
				return true
			}
		}
	}
	return false
}

// heldShort is the GPU request that a blocker says is short on a node that has
// enough of it, some of it held.
func (c *Case) heldShort(n *nodeView, b whatif.Blocker) (ask, bool) {
	r, ok := insufficient(b)
	if !ok {
		return ask{}, false
	}
	a, ok := c.askOf(r)
	used := n.requested[a.resource]
	return a, ok && n.allocatable(a.resource) >= a.count && used.Sign() > 0
}

// unmeasured lists what is not known of the GPU work of those in the pod's way.
func (c *Case) unmeasured() []string {
	if !c.held {
		return nil
	}
	const open = "idle holders are not told apart"
	if c.world.unmeasured != "" {
		return []string{fmt.Sprintf("GPU work: %s; %s", c.world.unmeasured, open)}
	}
	count, first := 0, ""
	for _, v := range c.verdict.Nodes {
		n := c.node(v.Node)
		for _, p := range n.pods {
			u := c.world.use(p)
			if _, holds := n.holder(p); !holds || u.Idle || u.Unknown == "" {
				continue
			}
			if count++; count == 1 {
				first = p.Namespace + "/" + p.Name + ": " + u.Unknown
			}
		}
	}
	switch count {
	case 0:
		return nil
	case 1:
		return []string{"GPU work of " + first + "; not taken for idle"}
	}
	return []string{fmt.Sprintf("GPU work of %d pods (%s, …); not taken for idle", count, first)}
}
