package rca

import (
	"fmt"
)

// migConfigUnknown needs the ConfigMap: one that could not be read proves
// nothing.
var migConfigUnknown = Rule{ID: MIGConfigUnknown, gpu: true, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	name := n.manager().config
	if name == "" || b.offered() {
		return nil
	}
	config := c.world.configOf(n)
	if config.source == nil {
		return nil
	}
	if _, ok := config.entries[name]; ok {
		return nil
	}
	ref := "ConfigMap/" + config.source.Namespace + "/" + config.source.Name
	return &finding{Proven, fmt.Sprintf("mig.config %q names no entry of its config", name),
		[]Evidence{{n.ref(), fmt.Sprintf("label %s=%s", labelMIGConfig, name)}, {ref, "has no such entry"}}}
}}
