package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// gpusFragmentedAcrossNodes: the nodes the pod may use have enough free GPUs
// together, none has them alone.
var gpusFragmentedAcrossNodes = Rule{ID: diagnosis.GPUsFragmentedAcrossNodes, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.Whole()
	if !ok || b.Allocatable < a.Count || a.Count < 2 {
		return nil
	}
	here := n.Free(a.Resource)
	total := c.freeWholeGPUs(a)
	if here.Value() <= 0 || total < a.Count {
		return nil
	}
	says := fmt.Sprintf("%d GPUs are free in total, no node has %d", total, a.Count)
	return &finding{diagnosis.Proven, says, []diagnosis.Evidence{n.UseOf(a)}}
}}

// freeWholeGPUs sums the free GPUs of the nodes whose only blocker is their
// number.
func (c *Case) freeWholeGPUs(a view.Ask) int64 {
	var total int64
	for _, v := range c.Verdict.Nodes {
		if len(v.Blockers) != 1 {
			continue
		}
		if r, ok := view.Insufficient(v.Blockers[0]); ok && r == string(a.Resource) {
			free := c.Node(v.Node).Free(a.Resource)
			total += max(0, free.Value())
		}
	}
	return total
}
