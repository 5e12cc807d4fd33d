package layouts

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// LostAtBoot is LayoutLost where nobody lays the GPUs out again: a node that no MIG manager sees to has offered MIG
// instances, comes up, and its device plugin runs and offers nothing at all. MIG mode survives a reboot on Ampere, and
// instances on no board (NVIDIA's MIG user guide, persistence); by strategy mixed a device plugin that finds MIG on and
// no instance runs on and announces nothing, and the kubelet keeps the name at 0.
func LostAtBoot(c *view.Cluster, n *view.Node, s *Short) *view.Finding {
	since := n.PluginSince()
	if since.IsZero() || c.State.Now.Sub(since) < settling || !ByHand(n) {
		return nil
	}
	a, ok := s.MIG()
	if _, had := n.Status.Capacity[a.Resource]; !ok || !had || n.AdvertisesAny() {
		return nil
	}
	evidence := []diagnosis.Evidence{n.Registered(),
		diagnosis.Fact(view.PodRef(n.PluginPod()), "the device plugin runs since "+diagnosis.Clock(since), diagnosis.That("status.phase", "", diagnosis.Is, string(n.PluginPod().Status.Phase))),
		diagnosis.Fact(n.Ref(), "no "+view.LabelMIGConfig+", and no MIG manager there", n.Labelled(view.LabelMIGConfig)...)}
	if up := n.ReadySince(); up.After(n.PluginPod().CreationTimestamp.Time) {
		at := diagnosis.Clock(up)
		return view.Found(diagnosis.Likely, fmt.Sprintf("offers none of its %s since it came up at %s: MIG instances do not survive a reboot, and no MIG manager makes them again there", a.Profile, at),
			append(evidence, diagnosis.Fact(n.Ref(), "Ready since "+at, view.Since("Ready", up)))...)
	}
	return view.Found(diagnosis.Possible, fmt.Sprintf("has offered %s and offers nothing, though its device plugin runs: its MIG instances may be gone, as they are after a reboot", a.Profile), evidence...)
}

// ByHand says that nothing in the cluster lays out the node's GPUs, and that nothing reports how they are.
func ByHand(n *view.Node) bool {
	return n.Geometry == nil && n.Labels[view.LabelMIGConfig] == "" && n.MIGManagerPod() == nil
}
