package causes

import (
	"fmt"
	"slices"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// settling is how long a device plugin may take to offer what MIG manager has applied.
const settling = 2 * time.Minute

// migLayoutLost is the drift that is seen without a probe: MIG manager says that it has
// applied a layout, the device plugin is not at fault, and the node offers nothing of the
// layout. Layouts, and on Hopper and later the mode itself, do not survive every reboot
// (NVIDIA's MIG user guide, persistence), and MIG manager acts on a change of the label.
var migLayoutLost = Rule{ID: diagnosis.MIGLayoutDrift, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.mig()
	m := n.Manager()
	if !ok || n.Geometry != nil || m.State != "success" || m.Strategy != "mixed" || b.capacity > 0 || !c.makes(n, a) {
		return nil
	}
	applied, known := labelSetAt(n, view.LabelMIGState)
	if known && c.Cluster.State.Now.Sub(applied) < settling || c.pluginAtFault(n) {
		return nil
	}
	clock := func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }
	evidence := []diagnosis.Evidence{
		diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, %s=success", view.LabelMIGConfig, m.Config, view.LabelMIGState), n.Labelled(view.LabelMIGConfig, view.LabelMIGState)...),
		n.Registered()}
	if ready := readySince(n); known && ready.After(applied) {
		evidence = append(evidence, diagnosis.Fact(n.Ref(), fmt.Sprintf("%s was written at %s, Ready since %s", view.LabelMIGState, clock(applied), clock(ready)), since("Ready", ready)))
		return &finding{diagnosis.Likely, fmt.Sprintf("mig.config %q was applied before the node last came up, and it offers nothing of it: the layout is lost", m.Config), evidence}
	}
	if !n.AdvertisesAny() {
		return nil // the plugin may as well be down
	}
	return &finding{diagnosis.Possible, fmt.Sprintf("mig.config %q was applied, and the node offers nothing of it", m.Config), evidence}
}}

// MakesAsked says whether the entry that the node's label names makes all profiles that are
// asked for; false where none is.
func (c *Case) MakesAsked(n *view.Node) bool {
	profiles := 0
	for _, a := range c.Asks {
		if a.Profile != "" {
			if profiles++; !c.makes(n, a) {
				return false
			}
		}
	}
	return profiles > 0
}

// makes says whether the entry that the node's label names makes what is asked.
func (c *Case) makes(n *view.Node, a view.Ask) bool {
	return slices.ContainsFunc(c.Cluster.ConfigOf(n).Entries[n.Manager().Config], func(r view.MIGRule) bool {
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
func (c *Case) pluginAtFault(n *view.Node) bool {
	if n.PluginPod() != nil {
		return pluginSince(n).IsZero()
	}
	return c.Cluster.HasPlugins()
}
