package causes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// What the pod demands of the place that it goes to is read in a room of its own; here it is
// said which plugin's refusal is about which of it.
var (
	// untoleratedTaint leaves those that Kubernetes itself sets for a cordon or a node that is
	// not ready to their causes.
	untoleratedTaint = Rule{ID: diagnosis.UntoleratedTaint, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if b.Plugin != "TaintToleration" {
			return nil
		}
		return found(terms.Taints(c.Subject(), n))
	}}
	// nodeNotReady claims the taints that the node controller sets from the node's conditions.
	nodeNotReady = Rule{ID: diagnosis.NodeNotReady, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if b.Plugin != "TaintToleration" {
			return nil
		}
		return c.notReady(n)
	}}
	nodeSelectorMismatch = Rule{ID: diagnosis.NodeSelectorMismatch, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if b.Plugin != "NodeAffinity" && !strings.Contains(b.Reason, "[NodeAffinity]") {
			return nil
		}
		if f := unmeant(c, n); f != nil {
			return f
		}
		return found(c.Labels.Tell(n))
	}}
	podAffinityConflict = Rule{ID: diagnosis.PodAffinityConflict, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if b.Plugin != "InterPodAffinity" {
			return nil
		}
		return found(c.Company.Tell(n, b.Reason))
	}}
	// volumeConflict is what the plugins that judge volumes refuse.
	volumeConflict = Rule{ID: diagnosis.VolumeConflict, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
		if !slices.Contains([]string{"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}, b.Plugin) {
			return nil
		}
		if b.Plugin == "NodeVolumeLimits" && c.volumes.FullOf(n) != nil {
			c.entitle(diagnosis.VolumeConflict, "no more volumes can be attached")
		}
		switch {
		case terms.Missing(c.Cluster, c.Pod) != "":
			c.entitle(diagnosis.VolumeConflict, "its volume claim is missing")
		case c.volumes.Unbound() != "":
			c.entitle(diagnosis.VolumeConflict, "its volume claim is not bound")
		}
		return found(c.volumes.Tell(n, b.Reason))
	}}
)

// notReady tells, too, that who would open the node cannot: then it does not pass.
func (c *Case) notReady(n *view.Node) *finding {
	f := terms.NotReady(c.Subject(), n)
	s := terms.ShutFor(c.Subject(), n)
	if f == nil || s == nil {
		return found(f)
	}
	if p, says, evidence, are := stack.Of(c.Cluster).AllInTrouble(s.Openers(c.Subject(), n)); are {
		f.Says += fmt.Sprintf(", and %s/%s, which %s, does not work: %s", p.Namespace, p.Name, strings.Replace(s.Opening(), "taint "+s.Taint(), "it", 1), says)
		f.Evidence = append(f.Evidence, evidence)
	}
	if o := terms.OverfullOn(c.Subject(), n); o != nil {
		f.Says, f.Evidence = f.Says+": "+o.Says(), append(f.Evidence, o.Evidence()...)
	}
	return found(f)
}

// entitleSelector words a selector that does match nodes: others are kept from the pod by it, these by something else.
func entitleSelector(c *Case) {
	if slices.ContainsFunc(c.Judged, func(n diagnosis.NodeBlockers) bool {
		return !slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return b.Cause == diagnosis.NodeSelectorMismatch })
	}) {
		c.entitle(diagnosis.NodeSelectorMismatch, "nodes it selects cannot take it")
	}
}
