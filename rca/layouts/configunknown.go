package layouts

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ConfigUnknown needs the ConfigMap: one that could not be read proves
// nothing.
func ConfigUnknown(c *view.Cluster, n *view.Node, s *Short) *view.Finding {
	name := n.Manager().Config
	if name == "" || s.offered() {
		return nil
	}
	config := c.ConfigOf(n)
	if config.Source == nil {
		return nil
	}
	if _, ok := config.Entries[name]; ok {
		return nil
	}
	ref := "ConfigMap/" + config.Source.Namespace + "/" + config.Source.Name
	if wrong := WrongMap(c, n); wrong != nil {
		return configWrong(n, ref, wrong)
	}
	return view.Found(diagnosis.Proven, fmt.Sprintf("mig.config %q names no entry of its config", name), diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s", view.LabelMIGConfig, name), n.Labelled(view.LabelMIGConfig)...), diagnosis.Fact(ref, "has no such entry", diagnosis.That("data", "", diagnosis.ContainsNot, " "+name+":")))
}
