package rca

import (
	"fmt"

	"github.com/unpend/unpend/rca/placement"
)

// migConfigInvalidForGPU: the entry that the label names exists, and cannot be
// placed on the node's GPUs.
var migConfigInvalidForGPU = Rule{ID: MIGConfigInvalidForGPU, gpu: true, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	name := n.manager().config
	if name == "" || n.geometry == nil || b.offered() {
		return nil
	}
	config := c.world.configOf(n)
	if config.source == nil {
		return nil
	}
	ref := "ConfigMap/" + config.source.Namespace + "/" + config.source.Name
	for _, rule := range config.entries[name] {
		for _, g := range n.geometry.Report.GPUs {
			grid, err := placement.GridOf(g)
			if err != nil || !rule.MIGEnabled || !rule.selects(g.Index) || len(rule.DeviceFilter) > 0 && !rule.filterMatches(n) {
				continue
			}
			layout := placement.Layout(rule.MIGDevices)
			if _, ok := grid.Place(layout); !ok {
				return &finding{n.certainty(), fmt.Sprintf("mig.config %q cannot exist on %s", name, g.Product), []Evidence{
					{ref, fmt.Sprintf("entry %s wants %s", name, layout)}, {n.reportRef(), fmt.Sprintf("GPU %d has no legal positions for that", g.Index)}}}
			}
		}
	}
	return nil
}}
