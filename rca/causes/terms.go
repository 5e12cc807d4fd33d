package causes

import (
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
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
		if f := c.unmeant(n); f != nil {
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
		if terms.Missing(c.Cluster, c.Pod) != "" {
			c.entitle(diagnosis.VolumeConflict, "its volume claim is missing")
		}
		return found(c.volumes.Tell(n, b.Reason))
	}}
)

func (c *Case) notReady(n *view.Node) *finding { return found(terms.NotReady(c.Subject(), n)) }
