package growth

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// noTypeLeft is what Karpenter says of a pod where no NodePool that it looks at has an instance type,
// whatever the pod asks (pkg/controllers/provisioning/scheduling/scheduler.go: no template is left).
const noTypeLeft = "filtered out all available instance types"

// byTypes tells of pools without an instance type for the pod: for this one, or for any.
func (c *Case) byTypes(g *Growth, o *scaling.Outlook, of []scaling.Reason, evidence diagnosis.Evidence) {
	g.Bar = scaling.Types
	if !strings.Contains(of[0].Text, noTypeLeft) {
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "Karpenter knows no instance type that meets what pod and NodePool require: "+view.Quotable(of[0].Text, 120), evidence)
		return
	}
	pools, facts := whose{c}.emptied(o, nil)
	g.Pools, facts = pools, append([]diagnosis.Evidence{evidence}, facts...)
	says := "no NodePool that Karpenter looks at has an instance type left, whatever a pod asks"
	if names := poolTitles(g.Pools); names != "" {
		says += " (" + names + ")"
	}
	g.None = true
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says+": what they require leaves none, or the cloud has none of them now", facts...)
}

func poolTitles(all []scaling.Pool) string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}
