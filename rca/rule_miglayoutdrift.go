package rca

import (
	"fmt"
	"strconv"
)

// migLayoutDrift: the GPUs are not laid out as the node, or the label of a layout
// that was applied, says, and the request would have what it needs if they were.
// Layouts are compared, never holders.
var migLayoutDrift = Rule{ID: MIGLayoutDrift, gpu: true, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.mig()
	strategy := n.manager().strategy
	if !ok || len(n.gpus) == 0 || strategy == "single" || strategy == "none" || !n.advertisesAny() {
		return nil
	}
	made := c.world.classOf(n).made[a.profile]
	if made > b.capacity && !n.shares(a) {
		return &finding{n.certainty(), fmt.Sprintf("its GPUs have %s that the node does not advertise", a.profile), []Evidence{
			{n.reportRef(), fmt.Sprintf("%d instances of %s exist", made, a.profile)}, {n.ref(), "capacity " + n.advertised()}}}
	}
	if wanted := c.world.applied(n, a); wanted > made && !n.shares(a) {
		return &finding{n.certainty(), fmt.Sprintf("mig.config %q was applied, its GPUs are laid out otherwise", n.Labels[labelMIGConfig]), []Evidence{
			{n.ref(), fmt.Sprintf("label %s=%s, %s=success makes %d of %s", labelMIGConfig, n.Labels[labelMIGConfig], labelMIGState, wanted, a.profile)},
			{n.reportRef(), fmt.Sprintf("%d instances of %s exist", made, a.profile)}}}
	}
	return nil
}}

// applied is how many instances of the profile the layout makes that MIG manager
// says it has applied; 0 when it says no such thing.
func (w *world) applied(n *nodeView, a ask) int64 {
	if n.manager().state != "success" || w.configOf(n).source == nil {
		return 0
	}
	count := int64(0)
	for _, named := range w.namedLayouts(n) {
		if named.config != n.manager().config {
			continue
		}
		for _, layout := range named.layouts {
			for profile, k := range layout {
				if spelled(profile) == a.profile {
					count += int64(k)
				}
			}
		}
	}
	return count
}

// shares says whether one instance is advertised several times, so that counts do
// not compare.
func (n *nodeView) shares(a ask) bool {
	replicas, err := strconv.Atoi(n.Labels[string(a.resource)+".replicas"])
	return err == nil && replicas > 1
}
