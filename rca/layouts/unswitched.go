package layouts

import (
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Unswitched is a MIG mode that MIG manager was to switch and that is as it was, on GPUs that take
// another at a reset, in a virtual machine: there a reset may not be let through, and a reboot is what
// switches it (nvml.h, nvmlDeviceSetMigMode; NVIDIA's MIG guide on A100 and A30 in passthrough; from
// Hopper on none is needed).
type Unswitched struct {
	On     bool // what the mode is to be
	Claims []diagnosis.Claim
}

// UnswitchedOn is that of a node on which MIG manager has failed; nil where the mode is what the layout
// wants, where GPUs of the node differ, and where nothing tells one of it.
func UnswitchedOn(c *view.Cluster, n *view.Node) *Unswitched {
	guest, board := guestBy(n), switchedByReset(n)
	if n.Manager().State != "failed" || guest == "" || board == "" {
		return nil
	}
	wants, asked := wantedMode(c, n)
	is, known := modeOf(n)
	if !asked || !known || wants == is {
		return nil
	}
	return &Unswitched{On: wants, Claims: n.Labelled(guest, board)}
}

// guestLabels say that a node is a virtual machine: node feature discovery by the processor's own flag,
// of GKE's and AKS' nodes it is known.
var guestLabels = []string{"feature.node.kubernetes.io/cpu-cpuid.HYPERVISOR", view.LabelGKE, "kubernetes.azure.com/agentpool"}

// guestBy is the label by which a node is a virtual machine; empty where none says so.
func guestBy(n *view.Node) string {
	for _, key := range guestLabels {
		if value := n.Labels[key]; value != "" && value != "false" {
			return key
		}
	}
	return ""
}

// switchedByReset is the label by which the node's GPUs are of the generation that takes a MIG mode at
// a reset; empty where they are not.
func switchedByReset(n *view.Node) string {
	const product, family = "nvidia.com/gpu.product", "nvidia.com/gpu.family"
	m, known := nodeprobe.ModelOf(n.Labels[product])
	switch {
	case strings.HasPrefix(m.ID, "A100"), strings.HasPrefix(m.ID, "A30"):
		return product
	case !known && n.Labels[family] == "ampere":
		return family
	}
	return ""
}

// wantedMode is the MIG mode that the node's layout asks of all its GPUs.
func wantedMode(c *view.Cluster, n *view.Node) (on, asked bool) {
	for i, rule := range c.ConfigOf(n).Entries[n.Labels[view.LabelMIGConfig]] {
		if i > 0 && rule.MIGEnabled != on {
			return false, false
		}
		on, asked = rule.MIGEnabled, true
	}
	return on, asked
}

// modeOf is the MIG mode of all the node's GPUs: as the driver reports it, else by what the device
// plugin offers, which by strategy mixed names whole ones and instances apart.
func modeOf(n *view.Node) (on, known bool) {
	whole, parted := false, false
	for _, g := range n.Reported() {
		whole, parted = whole || g.MIG != nil && !g.MIG.Current, parted || g.MIG != nil && g.MIG.Current
	}
	if n.Geometry == nil && n.Manager().Strategy == "mixed" {
		whole = n.Capacity(view.WholeGPU) > 0
		for name, q := range n.Status.Capacity {
			parted = parted || strings.HasPrefix(string(name), view.MIGPrefix) && q.Sign() > 0
		}
	}
	return parted, whole != parted
}
