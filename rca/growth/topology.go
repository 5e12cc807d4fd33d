package growth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// byTopology tells of pools of which no new node would meet what the pod asks of its neighbours.
// Karpenter looks at that after taints and labels, before what machines have
// (pkg/controllers/provisioning/scheduling/nodeclaim.go, CanAdd).
func (c *Case) byTopology(g *Growth, o *scaling.Outlook, of []scaling.Reason, evidence diagnosis.Evidence) {
	g.Bar, g.Pools = scaling.Topology, poolsNamed(o, poolNames(of))
	kind, key := of[0].Topology()
	says := fmt.Sprintf("Karpenter brings no node, for none that it could make meets the pod's %s over %s", kind, key)
	if others := domainsOfOthers(o, c.Pod, key); kind == scaling.Spread && len(others) > 0 {
		g.Counted = others
		says += ": it counts the values of " + key + " that NodePool " + strings.Join(others, ", ") + " makes, where the pod cannot be"
	} else if beside := of[0].Beside(); kind == scaling.Spread && len(beside) > 0 {
		g.Beside = beside
		says += ": beside " + strings.Join(beside, ", ") + " it counts machines that have no such value as one more, where none of its pods is"
	}
	g.Over = key
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence)
}

// domainsOfOthers are the pools that make values of a label on nodes that are not for a pod.
func domainsOfOthers(o *scaling.Outlook, p *corev1.Pod, key string) []string {
	var out []string
	for _, pool := range o.Pools {
		if pool.Suits(p) == scaling.No && slices.ContainsFunc(pool.Requirements, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == key && r.Operator == corev1.NodeSelectorOpIn
		}) {
			out = append(out, pool.Name)
		}
	}
	slices.Sort(out)
	return out
}

// leavingOf names the machines of a pool that are on their way out and count against its limits
// until they are gone, with what holds them: a PodDisruptionBudget, where one does.
func (c *Case) leavingOf(g *Growth, o *scaling.Outlook, p *scaling.Pool) (says string, evidence []diagnosis.Evidence) {
	for i := range o.Claims {
		k := &o.Claims[i]
		if !k.Leaving || k.Pool != p.Name || k.Node == "" {
			continue
		}
		held := Held{Claim: k.Name, Node: k.Node}
		fact := "is being deleted"
		if !k.Left.IsZero() {
			age := view.Age(c.Cluster.State.Now.Sub(k.Left))
			fact, held.Age = fact+" since "+k.Left.UTC().Format(time.RFC3339), age
		}
		evidence = append(evidence, diagnosis.Fact("NodeClaim/"+k.Name, fact+", node "+k.Node, diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Exists, "")))
		if n := c.Cluster.Nodes[k.Node]; n != nil {
			held.By = strings.Replace(c.Cluster.Guarded(n.Pods), " allows 0 more", "", 1)
		}
		g.Held = append(g.Held, held)
		says += fmt.Sprintf("; its node %s has been leaving", k.Node)
		if held.Age != "" {
			says += " for " + held.Age
		}
		says += ", and counts until it is gone"
		if held.By != "" {
			says += ": a PodDisruptionBudget keeps " + held.By + " there"
		}
	}
	return says, evidence
}

// Held is a machine on its way out.
type Held struct {
	Claim, Node, Age string
	By               string // who stays there by a PodDisruptionBudget; empty where nobody is known to
}
