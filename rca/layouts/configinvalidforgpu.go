package layouts

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// ConfigInvalidForGPU tells: the entry that the label names exists, and cannot be
// placed on the node's GPUs.
func ConfigInvalidForGPU(c *view.Cluster, n *view.Node, s *Short) *view.Finding {
	name := n.Manager().Config
	if name == "" || n.Geometry == nil || s.offered() {
		return nil
	}
	config := c.ConfigOf(n)
	if config.Source == nil {
		return nil
	}
	ref := "ConfigMap/" + config.Source.Namespace + "/" + config.Source.Name
	for _, rule := range config.Entries[name] {
		for _, g := range n.Geometry.Report.GPUs {
			grid, err := placement.GridOf(g)
			if err != nil || !rule.MIGEnabled || !rule.Selects(g.Index) || len(rule.DeviceFilter) > 0 && !rule.FilterMatches(n) {
				continue
			}
			layout := placement.Layout(rule.MIGDevices)
			if _, ok := grid.Place(layout); !ok {
				return view.Found(n.Certainty(), fmt.Sprintf("mig.config %q cannot exist on %s", name, g.Product),
					diagnosis.Fact(ref, fmt.Sprintf("entry %s wants %s", name, layout), entryClaims(ref, name, layout)...), diagnosis.Fact(n.ReportRef(), fmt.Sprintf("GPU %d has no legal positions for that", g.Index), append(n.Labelled(view.LabelMIGConfig), view.OfGPU(g.Index, ".product", diagnosis.Is, g.Product))...))
			}
		}
	}
	return nil
}
