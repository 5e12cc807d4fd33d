package layouts

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// settling is how long a device plugin may take to offer what MIG manager has applied.
const settling = 2 * time.Minute

// LayoutLost is the drift that is seen without a probe: MIG manager says that it has
// applied a layout, the device plugin is not at fault, and the node offers nothing of the
// layout, or less of it than GPU feature discovery counts. Layouts, and on Hopper and later the mode itself, do not survive every reboot
// (NVIDIA's MIG user guide, persistence), and MIG manager acts on a change of the label.
func LayoutLost(c *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
	m := n.Manager()
	counted := int64(Counted(n, a))
	fewer := s.Capacity > 0 && counted > s.Capacity && !Shares(n, a)
	if !ok || n.Geometry != nil || m.State != "success" || m.Strategy != "mixed" || s.Capacity > 0 && !fewer || !makes(c, n, a) {
		return nil
	}
	applied, known := labelSetAt(n, view.LabelMIGState)
	if known && c.State.Now.Sub(applied) < settling || pluginAtFault(c, n) {
		return nil
	}
	evidence := []diagnosis.Evidence{
		diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, %s=success", view.LabelMIGConfig, m.Config, view.LabelMIGState), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...),
		n.Registered()}
	if ready := n.ReadySince(); known && !fewer && ready.After(applied) {
		evidence = append(evidence, diagnosis.Fact(n.Ref(), fmt.Sprintf("%s was written at %s, Ready since %s", view.LabelMIGState, diagnosis.Clock(applied), diagnosis.Clock(ready)), view.Since("Ready", ready)))
		return view.Found(diagnosis.Likely, fmt.Sprintf("mig.config %q was applied before the node last came up, and it offers nothing of it: the layout is lost", m.Config), evidence...)
	}
	if !n.AdvertisesAny() {
		return nil // the plugin may as well be down
	}
	if counted > 0 {
		label, says := string(a.Resource)+".count", fmt.Sprintf("its GPUs have %s, as GPU feature discovery counts, and its device plugin offers none: it looks when it starts", a.Profile)
		if fewer {
			says = fmt.Sprintf("its GPUs have %d of %s, as GPU feature discovery counts, and its device plugin offers %d: it looks when it starts", counted, a.Profile, s.Capacity)
		}
		return view.Found(diagnosis.Likely, says, append(evidence, diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%d", label, counted), n.Labelled(label)...))...)
	}
	return view.Found(diagnosis.Possible, fmt.Sprintf("mig.config %q was applied, and the node offers nothing of it", m.Config), evidence...)
}

// Counted is how many instances of a profile GPU feature discovery counts on the node's GPUs
// (k8s-device-plugin docs/gpu-feature-discovery, strategy mixed); 0 where it says nothing of it.
func Counted(n *view.Node, a view.Ask) int {
	count, err := strconv.Atoi(n.Labels[string(a.Resource)+".count"])
	if err != nil {
		return 0
	}
	return count
}

// NotLooked says whether, by what GPU feature discovery counts, a node's device plugin has not
// looked since its GPUs were laid out: whatever it offers then is of before. Where the driver is
// asked, its answer counts.
func NotLooked(n *view.Node, a view.Ask) bool { return n.Geometry == nil && Counted(n, a) > 0 }

// makes says whether the entry that the node's label names makes what is asked.
func makes(c *view.Cluster, n *view.Node, a view.Ask) bool {
	return slices.ContainsFunc(c.ConfigOf(n).Entries[n.Manager().Config], func(r view.MIGRule) bool {
		if !r.MIGEnabled || len(r.DeviceFilter) > 0 && !r.FilterMatches(n) {
			return false
		}
		for profile, count := range r.MIGDevices {
			if count > 0 && view.Spelled(profile) == a.Profile {
				return true
			}
		}
		return false
	})
}

// pluginAtFault says that the device plugin of the node does not run, as far as its pod, or
// those of other nodes, can be seen.
func pluginAtFault(c *view.Cluster, n *view.Node) bool {
	if n.PluginPod() != nil {
		return n.PluginSince().IsZero()
	}
	return c.HasPlugins()
}
