package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// migConfigUnknown needs the ConfigMap: one that could not be read proves
// nothing.
var migConfigUnknown = Rule{ID: diagnosis.MIGConfigUnknown, gpu: true, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	name := n.Manager().Config
	if name == "" || b.offered() {
		return nil
	}
	config := c.Cluster.ConfigOf(n)
	if config.Source == nil {
		return nil
	}
	if _, ok := config.Entries[name]; ok {
		return nil
	}
	ref := "ConfigMap/" + config.Source.Namespace + "/" + config.Source.Name
	return &finding{diagnosis.Proven, fmt.Sprintf("mig.config %q names no entry of its config", name),
		[]diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s", view.LabelMIGConfig, name), n.Labelled(view.LabelMIGConfig)...), diagnosis.Fact(ref, "has no such entry", diagnosis.That("data", "", diagnosis.ContainsNot, " "+name+":"))}}
}}
