package rca

import (
	"slices"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// leading says of a cause in the device stack, a queue, a claim or a selector that the pod
// would run without it: it keeps the pod from everything, or it alone does so on some node.
// A selector leads where it leaves no node, of those with GPUs if such are asked, unless a node group may have what it asks
// for, whose taint is what keeps the pod from it.
func leading(c *causes.Case, nodes []diagnosis.NodeBlockers, id diagnosis.CauseID) bool {
	some := func() bool {
		return slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool { return alone(c, n, id) })
	}
	if causes.OfStack(id) {
		return some()
	}
	if p := c.Claims.Pinned(); p != nil && slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool { return n.Name == p.Node && alone(c, n, id) }) {
		return true // its claim has its devices there, and what keeps the pod from that node alone does
	}
	switch id {
	case diagnosis.Unknown: // its device plugin has announced there what it has none of now
		return slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool {
			return alone(c, n, id) && c.AnnouncedOnce(c.Node(n.Name)) != ""
		})
	case diagnosis.DRADriverMissing: // its driver runs there, and lists none of its devices
		return slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool {
			return alone(c, n, id) && causes.Unlisted(c, c.Node(n.Name)) != nil
		})
	case diagnosis.GPUUnhealthy: // of a node that has as many free with those that are sick
		return !c.IsOwn(diagnosis.KubeletAdmissionRefused) && slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool { return alone(c, n, id) && wholeAgain(c, c.Node(n.Name)) })
	case diagnosis.MIGConfigFailed, diagnosis.MIGConfigStuck, diagnosis.VolumeConflict:
		return some()
	case diagnosis.GPURequestTooLarge: // of a pod that its queue would take if it were not
		return causes.TooLargeForAll(c)
	case diagnosis.QueueNotAdmitted:
		return c.Everywhere[id] && !causes.TooLargeForAll(c)
	case diagnosis.QueueMisconfigured, diagnosis.DRAClaimMissing:
		return c.Everywhere[id]
	case diagnosis.NodeSelectorMismatch:
		return c.Growth().OfTemplate != diagnosis.UntoleratedTaint && !c.Growth().PassedOver() && !c.Growth().Met() && some() && !slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool {
			return (len(c.Asks) == 0 || c.Node(n.Name).HasGPUs()) && !slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return b.Cause == id })
		})
	}
	return false
}

// wholeAgain says whether a node would have what is asked if all of its devices were healthy: no more of them are held than leave that.
func wholeAgain(c *causes.Case, n *view.Node) bool {
	return !slices.ContainsFunc(c.Asks, func(a view.Ask) bool {
		s, free := n.StockOf(a.Resource), n.Free(a.Resource)
		return s.Capacity-s.Allocatable+free.Value() < a.Count
	})
}

// alone says whether a cause is all that keeps the pod from a node, which has as many GPUs
// as are asked, as far as anything tells.
func alone(c *causes.Case, n diagnosis.NodeBlockers, id diagnosis.CauseID) bool {
	if len(n.Blockers) == 0 || slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return b.Cause != id }) {
		return false
	}
	if c.Cluster.GivenUp(n.Name) != "" {
		return false // it would not run there for long
	}
	has := c.Node(n.Name).Expected()
	return has == 0 || !slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return a.Profile == "" && a.Count > has })
}
