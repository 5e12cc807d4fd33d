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
	if config.Wrong != nil {
		return configWrong(n, ref, config.Wrong)
	}
	return view.Found(diagnosis.Proven, fmt.Sprintf("mig.config %q names no entry of its config", name), diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s", view.LabelMIGConfig, name), n.Labelled(view.LabelMIGConfig)...), diagnosis.Fact(ref, "has no such entry", diagnosis.That("data", "", diagnosis.ContainsNot, " "+name+":")))
}

// configWrong tells of a ConfigMap that MIG manager cannot read: what it has applied before stays as it is.
func configWrong(n *view.Node, ref string, wrong *view.Wrong) *view.Finding {
	if n.Manager().State == "success" {
		return nil
	}
	var claims []diagnosis.Claim
	if wrong.Lacks != "" {
		claims = []diagnosis.Claim{diagnosis.That("data", "", diagnosis.ContainsNot, wrong.Lacks)}
	}
	return view.Found(diagnosis.Proven, fmt.Sprintf("MIG manager finds no entry %q: %s, which ClusterPolicy names, %s", n.Manager().Config, ref, wrong.Says),
		diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s", view.LabelMIGConfig, n.Manager().Config), n.Labelled(view.LabelMIGConfig)...), diagnosis.Fact(ref, wrong.Says, claims...))
}
