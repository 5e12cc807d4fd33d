package causes

import (
	"slices"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/growth"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// What autoscalers make of a pod is worked out once; each rule tells its part.
var (
	// scalingUp: an autoscaler brings a node for the pod, and its time is not over.
	scalingUp = ofGrowth(diagnosis.ScalingUp)
	// scaleUpStuck: it has said so, and the node has not come in all the time that it may
	// take, or came without what it was to bring.
	scaleUpStuck = ofGrowth(diagnosis.ScaleUpStuck)
	// cloudCapacityRefused: the cloud refused the machine, by its own code.
	cloudCapacityRefused = ofGrowth(diagnosis.CloudCapacityRefused)
	// autoscalerLimit: the pool may not grow.
	autoscalerLimit = ofGrowth(diagnosis.AutoscalerLimit)
	// autoscalerCannotHelp: an autoscaler has looked, and no machine that it knows would
	// help.
	autoscalerCannotHelp = ofGrowth(diagnosis.AutoscalerCannotHelp)
)

func ofGrowth(id diagnosis.CauseID) PodRule {
	return PodRule{ID: id, Aside: true, Tell: func(c *Case) *finding { return found(c.Growth().Told(id)) }}
}

// Growth is worked out once; none is for a pod that does not exist or has its node.
func (c *Case) Growth() *growth.Growth {
	switch {
	case c.grows != nil:
	case c.Queue.Grouped():
		c.grows = growth.Unasked(growth.Case{Cluster: c.Cluster, Pod: c.Pod, Asks: c.Asks, Wants: c.Wants})
	case c.Unborn || c.bound:
		c.grows = &growth.Growth{}
	default:
		c.grows = growth.Of(growth.Case{Cluster: c.Cluster, Pod: c.Pod, Asks: c.Asks, Wants: c.Wants, NoNode: len(c.Verdict.Feasible()) == 0})
	}
	return c.grows
}

// wayOut are the autoscalers' causes by what comes first where a new node is the only way.
var wayOut = []diagnosis.CauseID{diagnosis.CloudCapacityRefused, diagnosis.AutoscalerLimit, diagnosis.ScaleUpStuck, diagnosis.ScalingUp, diagnosis.AutoscalerCannotHelp}

// WayOut is the cause that keeps a new node away, where only a new one will do: the pod was
// meant for a pool that has none, and what other nodes lack is not what is wrong. Empty
// where a node that is there could have it. Of a cluster without a node it is all that there is to say.
func (c *Case) WayOut() diagnosis.CauseID {
	g := c.Growth()
	if noNodes.Tell(c) == nil && (!g.Suits || len(c.Judged) == 0) || c.IsOwn(diagnosis.WorkloadDeadlock) {
		return ""
	}
	at := slices.IndexFunc(wayOut, func(id diagnosis.CauseID) bool { return g.Told(id) != nil })
	if at < 0 || len(c.Judged) > 0 && wayOut[at] == diagnosis.AutoscalerCannotHelp && !g.PassedOver() {
		return ""
	}
	for _, n := range c.Judged {
		if !slices.ContainsFunc(n.Blockers, never) {
			return ""
		}
	}
	return wayOut[at]
}

// CameWithout is what keeps the GPUs from the node that an autoscaler brought for the pod:
// that is why it is stuck. Empty where it is not that.
func (c *Case) CameWithout() diagnosis.CauseID {
	_, id := brought(c)
	return id
}

// CameForGood says whether that node lacks what nothing there will bring it, however long it is waited for, and nothing else
// keeps the pod from it.
func CameForGood(c *Case) bool {
	n, id := brought(c)
	if n == nil {
		return false
	}
	f := c.Broken(n)
	at := slices.IndexFunc(c.Judged, func(j diagnosis.NodeBlockers) bool { return j.Name == n.Name })
	other := slices.ContainsFunc(c.Judged[at].Blockers, func(b diagnosis.Blocker) bool { return b.Cause != id })
	return !other && f != nil && f.Cause == id && (f.State == stack.Missing || f.State == stack.KeptOff)
}

// brought is the node that an autoscaler brought for the pod, with the link of the device stack that keeps its GPUs
// from it; nil where none came, or none such.
func brought(c *Case) (*view.Node, diagnosis.CauseID) {
	g := c.Growth()
	if g.Told(diagnosis.ScaleUpStuck) == nil && g.Told(diagnosis.ScalingUp) == nil {
		return nil, ""
	}
	for _, n := range c.Judged {
		if !broughtFor(c, g, n.Name) || c.Node(n.Name).ReadySince().IsZero() {
			continue // a node that is not ready brings nothing, whatever its device plugin is like
		}
		for _, b := range n.Blockers {
			// One that is young may still get what it lacks, unless its driver is on its way.
			if OfStack(b.Cause) && (g.Told(diagnosis.ScaleUpStuck) != nil || b.Cause == diagnosis.DriverNotReady) {
				return c.Node(n.Name), b.Cause
			}
		}
	}
	return nil, ""
}

// broughtFor says whether a node is the one that was promised: of its NodeClaim, or else one
// that has come since.
func broughtFor(c *Case, g *growth.Growth, node string) bool {
	if g.Claim != nil {
		return node == g.Claim.Node
	}
	age := g.PromiseAge(c.Cluster.State.Now)
	promised := c.Cluster.State.Now.Add(-age)
	return age > 0 && c.Node(node).CreationTimestamp.After(promised.Add(-time.Second))
}

// never says whether a node would refuse the pod as it is also without anybody on it.
func never(b diagnosis.Blocker) bool {
	switch b.Cause {
	case diagnosis.GPURequestTooLarge, diagnosis.NodeSelectorMismatch, diagnosis.UntoleratedTaint, diagnosis.GPUNotMIGCapable, diagnosis.MIGProfileUnsupported:
		return true
	case diagnosis.Unknown:
		return b.Plugin == "NodeResourcesFit" // no GPU on the node
	}
	return false
}
