package rca

import (
	"slices"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ofStack are the causes behind GPUs that are there and that nobody offers.
var ofStack = []diagnosis.CauseID{diagnosis.GPUStackMissing, diagnosis.GPUStackNotOnNode, diagnosis.DriverNotReady, diagnosis.RuntimeNotConfigured, diagnosis.DevicePluginDown}

// decisive are the proven causes of the device stack without which the pod would run: on one
// of their nodes nothing else is in its way, and the node has as many GPUs as are asked, as
// far as anything tells.
func decisive(c *causes.Case, nodes []diagnosis.NodeBlockers, causes []diagnosis.Cause) map[diagnosis.CauseID]bool {
	out := map[diagnosis.CauseID]bool{}
	for _, k := range causes {
		if k.Certainty == diagnosis.Proven && slices.Contains(ofStack, k.ID) {
			out[k.ID] = slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool { return alone(c, n, k.ID) })
		}
	}
	return out
}

// alone says whether a cause is all that keeps the pod from a node.
func alone(c *causes.Case, n diagnosis.NodeBlockers, id diagnosis.CauseID) bool {
	if len(n.Blockers) == 0 || slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return b.Cause != id }) {
		return false
	}
	has := c.Node(n.Name).Expected()
	return has == 0 || !slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return a.Profile == "" && a.Count > has })
}
