package growth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// lookedAt is how old a pod is by when the cluster autoscaler has looked at it: it does so every ten seconds.
const lookedAt = time.Minute

// untold is a case of which the cluster autoscaler has said nothing to the pod.
type untold struct{ *Case }

// byStatus tells what the cluster autoscaler's own objects say of groups that could hold the pod, where it has said
// nothing to the pod: of a round in which any group grew, or failed to, it writes to none.
func (c untold) byStatus(g *Growth, o *scaling.Outlook) {
	now := c.Cluster.State.Now
	if len(g.told) > 0 || o.Status == nil || len(o.Pools) > 0 || len(c.Asks) == 0 || !c.stopped() || c.Cluster.State.Unread["Event"] != "" ||
		now.Sub(o.Status.Updated) > silentAfter || now.Sub(c.Pod.CreationTimestamp.Time) < lookedAt {
		return
	}
	for _, tell := range []func(*Growth, *scaling.Outlook){c.silentBackoff, c.silentFailure, c.silentlyLost, c.silentlyBare} {
		if tell(g, o); len(g.told) > 0 {
			// Where no node has a GPU, a node of the group is the only way out.
			g.Suits = !c.Cluster.HasGPUs()
			return
		}
	}
}

func (c untold) silentBackoff(g *Growth, o *scaling.Outlook) {
	groups, sure, _ := c.couldHold(o, (*scaling.Group).InBackoff)
	for i := range groups {
		if c.tellBackoff(g, o, &groups[i], nil) {
			g.Groups = groups[i : i+1]
			c.unsaid(g, diagnosis.CloudCapacityRefused, sure)
			return
		}
	}
}

// silentFailure goes by its Events of groups, as long as it may leave such a group alone for them.
func (c untold) silentFailure(g *Growth, o *scaling.Outlook) {
	since := c.Cluster.State.Now.Add(-silentAfter)
	groups, sure, _ := c.couldHold(o, func(group *scaling.Group) bool {
		return slices.ContainsFunc(o.Failures, func(f scaling.Failure) bool { return f.At.After(since) && strings.Contains(f.Text, group.Short()) })
	})
	for i := range groups {
		if group := &groups[i]; c.tellFailure(g, o, []string{group.Name, group.Short()}, since, []diagnosis.Evidence{statusOf(o, group)}) {
			g.Groups = groups[i : i+1]
			c.unsaid(g, diagnosis.CloudCapacityRefused, sure)
			c.unsaid(g, diagnosis.ScaleUpStuck, sure)
			return
		}
	}
}

// silentlyLost: machines that were asked for have not joined in all the time that they may take.
func (c untold) silentlyLost(g *Growth, o *scaling.Outlook) {
	groups, sure, _ := c.couldHold(o, func(group *scaling.Group) bool { return group.Health.NodeCounts.LongUnregistered > 0 })
	if len(groups) > 0 {
		group := groups[0]
		g.Groups = groups[:1]
		g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, fmt.Sprintf("%s of node group %s was asked of the cloud and never joined", view.CountOf(group.Health.NodeCounts.LongUnregistered, "machine"), group.Short()), statusOf(o, &group))
		c.unsaid(g, diagnosis.ScaleUpStuck, sure)
	}
}

// silentlyBare: machines joined, and without the GPUs that they were to bring.
func (c untold) silentlyBare(g *Growth, o *scaling.Outlook) {
	groups, sure, _ := c.couldHold(o, func(group *scaling.Group) bool { return group.Health.NodeCounts.Registered.Unready.ResourceUnready > 0 })
	if len(groups) > 0 {
		group := groups[0]
		g.Groups = groups[:1]
		g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, fmt.Sprintf("%s of node group %s came without GPUs", view.CountOf(group.Health.NodeCounts.Registered.Unready.ResourceUnready, "node"), group.Short()), statusOf(o, &group))
		c.unsaid(g, diagnosis.ScaleUpStuck, sure)
	}
}

// unsaid takes back how sure it is: the autoscaler says it of a group, and not that the pod waits for that.
func (c untold) unsaid(g *Growth, id diagnosis.CauseID, sure bool) {
	f := g.told[id]
	if f == nil {
		return
	}
	if f.Certainty = diagnosis.Likely; !sure {
		f.Certainty = diagnosis.Possible
		f.Says += "; whether that group could hold the pod nobody knows"
	}
}
