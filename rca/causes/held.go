package causes

import (
	"context"
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// measure asks what the holders of GPUs do with them, if the pod waits for GPUs that are
// held.
func (c *Case) measure(ctx context.Context, ask diagnosis.Measure) {
	c.held = c.waitsForHeld()
	if c.held && c.Cluster.Measure(ctx, ask) {
		c.Forget()
	}
}

// waitsForHeld says whether a node has enough of the GPUs that the pod asks for,
// were it not for those who hold them.
func (c *Case) waitsForHeld() bool {
	for _, v := range c.Verdict.Nodes {
		n := c.Node(v.Node)
		for _, b := range v.Blockers {
			if _, ok := heldShort(c, n, b); ok {
				return true
			}
		}
	}
	return false
}

// heldShort is the GPU request that a blocker says is short on a node that has
// enough of it, some of it held.
func heldShort(c *Case, n *view.Node, b whatif.Blocker) (view.Ask, bool) {
	r, ok := view.Insufficient(b)
	if !ok {
		return view.Ask{}, false
	}
	a, ok := c.askOf(r)
	used := n.Requested[a.Resource]
	return a, ok && n.Allocatable(a.Resource) >= a.Count && used.Sign() > 0
}

// Unmeasured lists what is not known of the GPU work of those in the pod's way.
func (c *Case) Unmeasured() []string {
	if !c.held {
		return nil
	}
	const open = "idle holders are not told apart"
	if c.Cluster.Unmeasured != "" {
		return []string{fmt.Sprintf("GPU work: %s; %s", c.Cluster.Unmeasured, open)}
	}
	count, first := 0, ""
	for _, v := range c.Verdict.Nodes {
		n := c.Node(v.Node)
		for _, p := range n.Pods {
			u := c.Cluster.Use(p)
			if _, holds := n.Holder(p); !holds || u.Idle || u.Unknown == "" {
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
