package rca

import (
	"strings"

	"github.com/unpend/unpend/rca/whatif"
)

// unknown takes what no rule claimed.
var unknown = Rule{ID: Unknown, Tell: func(_ *Case, n *nodeView, b whatif.Blocker) *finding {
	if r, ok := insufficient(b); ok && !n.hasGPUs() && strings.HasPrefix(r, "nvidia.com/") {
		return &finding{Proven, "no GPU on the node", []Evidence{{n.ref(), "no label, capacity or report speaks of a GPU"}}}
	}
	return &finding{Possible, "not settled: " + b.Reason, []Evidence{{n.ref(), b.Plugin + ": " + b.Reason}}}
}}
