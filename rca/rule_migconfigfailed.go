package rca

import (
	"fmt"
)

// migConfigFailed names the pods that still run on the node: mig-parted fails
// when a GPU is in use.
var migConfigFailed = Rule{ID: MIGConfigFailed, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	if n.manager().state != "failed" || b.offered() {
		return nil
	}
	evidence := []Evidence{{n.ref(), fmt.Sprintf("label %s=failed for %s=%s", labelMIGState, labelMIGConfig, n.Labels[labelMIGConfig])}}
	for _, p := range n.pods {
		if holdsGPU(n.requests[p]) {
			evidence = append(evidence, Evidence{"Pod/" + p.Namespace + "/" + p.Name, "still runs on a GPU of the node"})
		}
	}
	return &finding{Proven, fmt.Sprintf("MIG manager could not apply %q", n.Labels[labelMIGConfig]), evidence}
}}
