package rca

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// migConfigFailed names the pods that still run on the node: mig-parted fails
// when a GPU is in use.
var migConfigFailed = Rule{ID: MIGConfigFailed, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	if n.manager().state != "failed" || b.offered() {
		return nil
	}
	evidence := []Evidence{{n.ref(), fmt.Sprintf("label %s=failed for %s=%s", labelMIGState, labelMIGConfig, n.Labels[labelMIGConfig])}}
	var on []*corev1.Pod
	for _, p := range n.pods {
		if holdsGPU(n.requests[p]) {
			on = append(on, p)
			evidence = append(evidence, Evidence{"Pod/" + p.Namespace + "/" + p.Name, "still runs on a GPU of the node"})
		}
	}
	says := fmt.Sprintf("MIG manager could not apply %q", n.Labels[labelMIGConfig])
	switch len(on) {
	case 0:
	case 1:
		says += ", " + podList(on) + " still runs on its GPUs"
	default:
		says += ", " + podList(on) + " still run on its GPUs"
	}
	return &finding{Proven, says, evidence}
}}
