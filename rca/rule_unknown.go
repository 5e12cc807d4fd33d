package rca

import (
	"strings"
)

// unknown takes what no rule claimed.
var unknown = Rule{ID: Unknown, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	if strings.HasPrefix(string(b.short), "nvidia.com/") && !n.hasGPUs() {
		return &finding{Proven, "no GPU on the node", []Evidence{{n.ref(), "no label, capacity or report speaks of a GPU"}}}
	}
	return &finding{Possible, "not settled: " + b.Reason, []Evidence{{n.ref(), b.Plugin + ": " + b.Reason}}}
}}
