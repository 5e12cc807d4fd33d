package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// unknown takes what no rule claimed.
var unknown = Rule{ID: diagnosis.Unknown, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	if strings.HasPrefix(string(b.scarce), "nvidia.com/") && !n.HasGPUs() {
		return &finding{diagnosis.Proven, "no GPU on the node", []diagnosis.Evidence{n.NoGPU(b.scarce)}}
	}
	return &finding{diagnosis.Possible, "not settled: " + b.Reason, []diagnosis.Evidence{{Ref: n.Ref(), Fact: b.Plugin + ": " + b.Reason}}}
}}
