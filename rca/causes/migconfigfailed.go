package causes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// migConfigFailed names the pods that still run on the node: mig-parted fails
// when a GPU is in use.
var migConfigFailed = Rule{ID: diagnosis.MIGConfigFailed, gpu: true, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	if n.Manager().State != "failed" || b.offered() {
		return nil
	}
	evidence := []diagnosis.Evidence{{Ref: n.Ref(), Fact: fmt.Sprintf("label %s=failed for %s=%s", view.LabelMIGState, view.LabelMIGConfig, n.Labels[view.LabelMIGConfig])}}
	var on []*corev1.Pod
	for _, p := range n.Pods {
		if view.HoldsGPU(n.Requests[p]) {
			on = append(on, p)
			evidence = append(evidence, diagnosis.Evidence{Ref: "Pod/" + p.Namespace + "/" + p.Name, Fact: "still runs on a GPU of the node"})
		}
	}
	says := fmt.Sprintf("MIG manager could not apply %q", n.Labels[view.LabelMIGConfig])
	switch len(on) {
	case 0:
	case 1:
		says += ", " + view.PodList(on) + " still runs on its GPUs"
	default:
		says += ", " + view.PodList(on) + " still run on its GPUs"
	}
	return &finding{diagnosis.Proven, says, evidence}
}}
