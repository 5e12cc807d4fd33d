package causes

import (
	"fmt"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// migConfigFailed names the pods that still run on the node: mig-parted fails
// when a GPU is in use. Who else uses it on the host no object tells.
var migConfigFailed = Rule{ID: diagnosis.MIGConfigFailed, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if n.Manager().State != "failed" || b.offered() {
		return nil
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=failed for %s=%s", view.LabelMIGState, view.LabelMIGConfig, n.Labels[view.LabelMIGConfig]), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...)}
	says, who := c.stillThere(n)
	if len(n.GPUHolders()) == 0 && c.Cluster.State.Unread["Pod"] == "" {
		says += ", and no pod holds a GPU of it: what does may run on the host (DCGM, nvidia-persistenced, nvidia_drm)"
	}
	return &finding{diagnosis.Proven, fmt.Sprintf("MIG manager could not apply %q", n.Labels[view.LabelMIGConfig]) + says, append(evidence, who...)}
}}

// stillThere names who is on the GPUs of a node that MIG manager does not get through with.
func (c *Case) stillThere(n *view.Node) (says string, evidence []diagnosis.Evidence) {
	on := n.GPUHolders()
	for _, p := range on {
		evidence = append(evidence, diagnosis.Fact(view.PodRef(p), "still runs on a GPU of the node", diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name)))
	}
	switch {
	case len(on) == 1:
		says = ", " + view.PodList(on) + " still runs on its GPUs"
	case len(on) > 1:
		says = ", " + view.PodList(on) + " still run on its GPUs"
	}
	if labels := PausedComponents(n); len(labels) > 0 {
		evidence = append(evidence, diagnosis.Fact(n.Ref(), strings.Join(labels, ", ")+"="+view.Paused, n.Labelled(labels...)...))
	}
	for _, p := range lingering(n) {
		says += ", " + p.Namespace + "/" + p.Name + " was told to leave and has not"
		evidence = append(evidence, diagnosis.Fact(view.PodRef(p), "deleted at "+p.DeletionTimestamp.UTC().Format("15:04 MST")+", and is still there: its component is paused",
			diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Is, p.DeletionTimestamp.UTC().Format(time.RFC3339))))
	}
	return says, evidence
}
