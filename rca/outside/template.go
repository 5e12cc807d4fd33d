package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// selectTemplate is for the selector that fits nothing that any pool makes: growth is no
// help until pod and pool agree. A pool's own side is a command beside: others use it too.
func selectTemplate(c *edit.Workload, kind diagnosis.FixKind, id diagnosis.CauseID, title, change, pool string) []edit.Change {
	g := c.Growth()
	pools := c.Cluster.Outlook().Pools
	if g.Label != "" {
		title += ", which none makes with label " + g.Label + " as asked,"
		pool = g.Label + " in " + pool
		if len(g.Pools) > 0 {
			pools = g.Pools[:1]
		}
	}
	look, other := "kubectl get nodepools -o yaml  # labels, requirements and taints in spec.template", "# or let the pool agree: kubectl edit nodepool NAME  # "+pool
	if len(pools) == 1 {
		other = strings.Replace(other, "NAME", pools[0].Name, 1)
	}
	if !g.Karpenter {
		look, other = "kubectl get nodes --show-labels  # and the labels and taints of each node group", "# or let the node group agree, with the cloud's own command"
	}
	return []edit.Change{{Kind: kind, Cause: id, Manual: true, Risk: diagnosis.LowRisk, Title: title + " in " + c.WorkloadName(), Untestable: "no node is there for which it could be tried",
		Commands: []string{look, fmt.Sprintf("kubectl -n %s get pod %s -o jsonpath='{.spec.nodeSelector}{.spec.affinity.nodeAffinity}{.spec.tolerations}'", c.Pod.Namespace, c.Pod.Name), c.EditByHand(change), other}}}
}

// OfTemplate is what is offered for a cause that is told of what pools make.
func OfTemplate(c *edit.Workload, id diagnosis.CauseID) []edit.Change {
	switch id {
	case diagnosis.NodeSelectorMismatch:
		return selectTemplate(c, diagnosis.FixSelector, id, "ask by labels that a node pool has", "node selector and affinity as a pool has them", "spec.template.metadata.labels, or spec.template.spec.requirements")
	case diagnosis.UntoleratedTaint:
		title, change := "tolerate the node pool's taint", "tolerate it"
		if t := c.Growth().Tolerate; t != "" {
			title, change = title+" with "+t, "tolerations: one more, "+t
		}
		out := selectTemplate(c, diagnosis.AddToleration, id, title, change, "spec.template.spec.taints")
		if !c.Growth().Karpenter {
			out[0].Commands = append(out[0].Commands, "# or, if the group has lost that taint since: scale it to one node by hand, for of a group at zero the autoscaler knows its last node")
		}
		if c.Growth().LabelsHidden {
			out = append(out, OfTemplate(c, diagnosis.NodeSelectorMismatch)...)
		}
		return out
	}
	return nil
}
