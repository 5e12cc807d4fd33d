package causes

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
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
	if slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { free := n.Free(a.Resource); return free.Value() >= a.Count }) {
		says = fmt.Sprintf("%d GPUs are free in total on the nodes that it may use, none of them has %d", total, a.Count)
	}
	use := n.UseOf(a)
	use.Claims = append(use.Claims, append(c.itAsks(a.Resource), c.freeClaims(a, total)...)...)
	return &finding{diagnosis.Proven, says, []diagnosis.Evidence{use}}
}}

// freeClaims are how many GPUs the nodes have left that the pod may use, where it is no more than
// its selector, affinity and tolerations that tells which those are.
func (c *Case) freeClaims(a view.Ask, total int64) []diagnosis.Claim {
	sum := int64(0)
	for _, v := range c.Verdict.Nodes {
		for _, reason := range v.Blockers {
			if !slices.Contains([]string{"NodeResourcesFit", "NodeAffinity", "TaintToleration", "NodeUnschedulable"}, reason.Plugin) {
				return nil
			}
		}
		if !slices.ContainsFunc(v.Blockers, func(b whatif.Blocker) bool { return b.Plugin != "NodeResourcesFit" }) {
			free := c.Node(v.Node).Free(a.Resource)
			sum += free.Value()
		}
	}
	if sum != total {
		return nil
	}
	return c.ofPod(diagnosis.That("sum(nodes.free["+string(a.Resource)+"])", "", diagnosis.Is, strconv.FormatInt(total, 10)))
}

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
