package rca

import (
	"fmt"
)

// gpusFragmentedAcrossNodes: the nodes the pod may use have enough free GPUs
// together, none has them alone.
var gpusFragmentedAcrossNodes = Rule{ID: GPUsFragmentedAcrossNodes, gpu: true, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.whole()
	if !ok || b.allocatable < a.count || a.count < 2 {
		return nil
	}
	here := n.free(a.resource)
	total := c.freeWholeGPUs(a)
	if here.Value() <= 0 || total < a.count {
		return nil
	}
	says := fmt.Sprintf("%d GPUs are free in total, no node has %d", total, a.count)
	return &finding{Proven, says, []Evidence{n.useOf(a)}}
}}

// freeWholeGPUs sums the free GPUs of the nodes whose only blocker is their
// number.
func (c *Case) freeWholeGPUs(a ask) int64 {
	var total int64
	for _, v := range c.verdict.Nodes {
		if len(v.Blockers) != 1 {
			continue
		}
		if r, ok := insufficient(v.Blockers[0]); ok && r == string(a.resource) {
			free := c.node(v.Node).free(a.resource)
			total += max(0, free.Value())
		}
	}
	return total
}
