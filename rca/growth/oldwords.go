package growth

import (
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// byOldWords tells of groups at their largest size with a machine that would hold the pod were it fresh, where the cluster
// autoscaler says only that the pod wouldn't fit a new node: before 1.14 that is all it says, whatever keeps it from growing
// (kubernetes/autoscaler issue 1607). false where there is none.
func (c whose) byOldWords(g *Growth, o *scaling.Outlook, said string, evidence []diagnosis.Evidence) bool {
	if !strings.HasSuffix(strings.TrimSpace(said), "(it wouldn't fit if a new node is added)") {
		return false
	}
	for i := range groupsOf(o) {
		group := &o.Status.Groups[i]
		if group.AtMax() && slices.ContainsFunc(membersOf(c.Cluster, group), c.fitsFresh) {
			g.Groups, evidence = append(g.Groups, *group), append(evidence, statusOf(o, group))
		}
	}
	if len(g.Groups) == 0 {
		return false
	}
	g.Bar = scaling.Limit
	g.tell(diagnosis.AutoscalerLimit, diagnosis.Likely, "at their largest size: node group "+sizes(g.Groups), evidence...)
	return true
}

// fitsFresh says whether the pod may be on such a node, and all of it is enough for the pod.
func (c whose) fitsFresh(n *view.Node) bool { return scaling.HoldsFresh(n.Node, c.Wants) && c.letOn(n) }
