package layouts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ConfigFailed names the pods that still run on the node: mig-parted fails
// when a GPU is in use. Who else uses it on the host no object tells.
func ConfigFailed(c *view.Cluster, n *view.Node, s *Short) *view.Finding {
	if n.Manager().State != "failed" || s.offered() {
		return nil
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=failed for %s=%s", view.LabelMIGState, view.LabelMIGConfig, n.Labels[view.LabelMIGConfig]), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...)}
	says, who := stillThere(n)
	if u := UnswitchedOn(c, n); u != nil && len(n.GPUHolders()) == 0 && c.State.Unread["Pod"] == "" {
		says += fmt.Sprintf(", and no pod holds a GPU of it: its MIG mode is still %s, and %s in a virtual machine may take another only at a reboot", onOff(!u.On), n.Product())
		evidence = append(evidence, diagnosis.Fact(n.Ref(), "is a virtual machine with "+n.Product(), u.Claims...))
	} else if len(n.GPUHolders()) == 0 && c.State.Unread["Pod"] == "" {
		says += ", and no pod holds a GPU of it: what does may run on the host (DCGM, nvidia-persistenced, nvidia_drm)"
		if names := OtherwiseSpelled(c, n); len(names) > 0 {
			says += ", or its driver does not know the name " + strings.Join(names, ", ")
		}
	}
	return view.Found(diagnosis.Proven, fmt.Sprintf("MIG manager could not apply %q", n.Labels[view.LabelMIGConfig])+says, append(evidence, who...)...)
}

// OtherwiseSpelled are the profiles of the node's layout whose names move with the driver, where
// nobody reports those of this one: half of a board or more is 3g.39gb and 7g.79gb to some
// (go-nvlib, getMigMemorySizeGB: it rounds a part of the memory that the driver tells). MIG
// manager fails on a name that the driver does not have.
func OtherwiseSpelled(c *view.Cluster, n *view.Node) []string {
	if n.Geometry != nil {
		return nil
	}
	config := c.ConfigOf(n)
	if config.Source == nil {
		return nil
	}
	var out []string
	for _, rule := range config.Entries[n.Labels[view.LabelMIGConfig]] {
		for name := range rule.MIGDevices {
			if compute, _, _, ok := view.ReadProfile(view.Spelled(name)); ok && compute >= 3 && rule.MIGEnabled && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// stillThere names who is on the GPUs of a node that MIG manager does not get through with.
func stillThere(n *view.Node) (says string, evidence []diagnosis.Evidence) {
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
	for _, p := range Lingering(n) {
		says += ", " + p.Namespace + "/" + p.Name + " was told to leave and has not"
		evidence = append(evidence, diagnosis.Fact(view.PodRef(p), "deleted at "+p.DeletionTimestamp.UTC().Format("15:04 MST")+", and is still there: its component is paused",
			diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Is, p.DeletionTimestamp.UTC().Format(time.RFC3339))))
	}
	return says, evidence
}
