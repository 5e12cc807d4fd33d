package layouts

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Wrong is why a ConfigMap has no entries for MIG manager, and the text that it lacks.
type Wrong struct{ Says, Lacks string }

// WrongMap is what the ConfigMap that ClusterPolicy names lacks of what mig-parted reads
// (api/spec/v1/spec.go); nil where it has entries, or none is read.
func WrongMap(c *view.Cluster, n *view.Node) *Wrong {
	config := c.ConfigOf(n)
	if config.Source == nil || config.Entries != nil {
		return nil
	}
	text, has := config.Source.Data[view.MIGConfigKey]
	switch {
	case !has:
		return &Wrong{"has no key " + view.MIGConfigKey, view.MIGConfigKey}
	case !strings.Contains(text, "mig-configs:"):
		return &Wrong{"has no mig-configs in its " + view.MIGConfigKey, "mig-configs:"}
	case !strings.Contains(text, "version:"):
		return &Wrong{"has no version in its " + view.MIGConfigKey, "version:"}
	}
	return &Wrong{"has a " + view.MIGConfigKey + " that is not what mig-parted reads", ""}
}

// configWrong tells of a ConfigMap that MIG manager cannot read: what it has applied before stays as it is.
func configWrong(n *view.Node, ref string, wrong *Wrong) *view.Finding {
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
