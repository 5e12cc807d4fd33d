package causes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
)

// What autoscalers make of a pod is worked out once, in growth; each rule tells its part.
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
	return PodRule{ID: id, Aside: true, Tell: func(c *Case) *finding { return c.Growth().told[id] }}
}

// promised is how long a node that was promised may take: after that the cluster autoscaler
// gives a machine up that has not joined (max-node-provision-time), Karpenter a NodeClaim
// that has not registered (pkg/controllers/nodeclaim/lifecycle/liveness.go).
const promised = 15 * time.Minute

// equipped is how long a node that has registered may take until its GPUs are there:
// drivers are built meanwhile.
const equipped = 10 * time.Minute

// Growth is what the autoscalers make of a pod.
type Growth struct {
	told map[diagnosis.CauseID]*finding
	// Suits: the autoscaler took a pool for one that the pod fits, or the pool's own words
	// say so. Then a node of it is what the pod was meant for.
	Suits bool
	// Since is when a node was promised, and By until when it has to be there; zero: not
	// told.
	Since, By time.Time
	// Pools are the NodePools it is about, Groups the cluster autoscaler's node groups.
	Pools  []scaling.Pool
	Groups []scaling.Group
	// Claim is the NodeClaim that is stuck or under way; nil for none that is known.
	Claim *scaling.Claim
	// Codes are the cloud's.
	Codes []scaling.Code
	// Bar is what keeps the autoscaler from helping, Lacks the resource that no machine it
	// knows has, Said its own words.
	Bar   scaling.Bar
	Lacks string
	Said  string
	// Karpenter: it is Karpenter's, else the cluster autoscaler's.
	Karpenter bool
	// OfTemplate is NodeSelectorMismatch or UntoleratedTaint, where that is what keeps the
	// pod from all that the pools make; empty else.
	OfTemplate diagnosis.CauseID
	template   *finding
}

// Growth is worked out once.
func (c *Case) Growth() *Growth {
	if c.grows == nil {
		c.grows = &Growth{told: map[diagnosis.CauseID]*finding{}}
		if !c.Unborn && !c.bound {
			c.byKarpenter(c.grows)
			other := &Growth{told: map[diagnosis.CauseID]*finding{}}
			c.byClusterAutoscaler(other)
			if len(c.grows.told) == 0 && c.grows.OfTemplate == "" {
				c.grows = other
			}
			for id, f := range other.told { // some clusters have both
				c.grows.tell(id, f.certainty, f.says, f.evidence...)
			}
		}
	}
	return c.grows
}

// ShutBy says whether a NodePool that it is about is not usable and makes its machines by a
// node class of that kind.
func (g *Growth) ShutBy(kind string) bool {
	return slices.ContainsFunc(g.Pools, func(p scaling.Pool) bool {
		usable, known := p.Usable()
		return p.Class.Kind == kind && known && !usable
	})
}

// tell notes a cause, unless it is told already.
func (g *Growth) tell(id diagnosis.CauseID, certainty diagnosis.Certainty, says string, evidence ...diagnosis.Evidence) {
	if g.told[id] == nil {
		g.told[id] = &finding{certainty, says, evidence}
	}
}

// wayOut are the autoscalers' causes by what comes first where a new node is the only way.
var wayOut = []diagnosis.CauseID{diagnosis.CloudCapacityRefused, diagnosis.AutoscalerLimit, diagnosis.ScaleUpStuck, diagnosis.ScalingUp}

// WayOut is the cause that keeps a new node away, where only a new one will do: the pod was
// meant for a pool that has none, and what other nodes lack is not what is wrong. Empty
// where a node that is there could have it.
func (c *Case) WayOut() diagnosis.CauseID {
	g := c.Growth()
	if !g.Suits || len(c.Judged) == 0 || c.IsOwn(diagnosis.WorkloadDeadlock) {
		return ""
	}
	at := slices.IndexFunc(wayOut, func(id diagnosis.CauseID) bool { return g.told[id] != nil })
	if at < 0 {
		return ""
	}
	for _, n := range c.Judged {
		if !slices.ContainsFunc(n.Blockers, c.never) {
			return ""
		}
	}
	return wayOut[at]
}

// CameWithout is what keeps the GPUs from the node that an autoscaler brought for the pod:
// that is why it is stuck. Empty where it is not that.
func (c *Case) CameWithout() diagnosis.CauseID {
	g := c.Growth()
	if g.told[diagnosis.ScaleUpStuck] == nil && g.told[diagnosis.ScalingUp] == nil {
		return ""
	}
	for _, n := range c.Judged {
		if !c.broughtFor(g, n.Name) {
			continue
		}
		for _, b := range n.Blockers {
			// One that is young may still get what it lacks, unless its driver is on its way.
			if OfStack(b.Cause) && (g.told[diagnosis.ScaleUpStuck] != nil || b.Cause == diagnosis.DriverNotReady) {
				return b.Cause
			}
		}
	}
	return ""
}

// broughtFor says whether a node is the one that was promised: of its NodeClaim, or else one
// that has come since.
func (c *Case) broughtFor(g *Growth, node string) bool {
	if g.Claim != nil {
		return node == g.Claim.Node
	}
	promised := c.Cluster.State.Now.Add(-c.PromiseAge())
	return c.PromiseAge() > 0 && c.Node(node).CreationTimestamp.After(promised.Add(-time.Second))
}

// never says whether a node would refuse the pod as it is also without anybody on it.
func (c *Case) never(b diagnosis.Blocker) bool {
	switch b.Cause {
	case diagnosis.GPURequestTooLarge, diagnosis.NodeSelectorMismatch, diagnosis.UntoleratedTaint, diagnosis.GPUNotMIGCapable, diagnosis.MIGProfileUnsupported:
		return true
	case diagnosis.Unknown:
		return b.Plugin == "NodeResourcesFit" // no GPU on the node
	}
	return false
}

// events are the pod's own, not those of a predecessor of its name.
func (c *Case) events(yield func(*corev1.Event) bool) {
	for _, e := range c.Cluster.EventsOf("Pod", c.Pod.Namespace, c.Pod.Name) {
		if uid := e.InvolvedObject.UID; (uid == "" || uid == c.Pod.UID) && !yield(e) {
			return
		}
	}
}

// newestEvent is the pod's event that ok accepts and that was seen last; a repetition
// counts as seen.
func (c *Case) newestEvent(ok func(*corev1.Event) bool) *corev1.Event {
	var newest *corev1.Event
	for e := range c.events {
		if ok(e) && (newest == nil || scaling.Seen(e).After(scaling.Seen(newest))) {
			newest = e
		}
	}
	return newest
}

// PromiseAge is for how long a node has been promised: a promise that is repeated, as
// Karpenter does, is no younger for it. 0 where none is.
func (c *Case) PromiseAge() time.Duration {
	g := c.Growth()
	if g.Since.IsZero() {
		return 0
	}
	return c.Cluster.State.Now.Sub(g.Since)
}

// stopped says whether no filter accepts a node: then objects of an autoscaler alone say
// why none comes.
func (c *Case) stopped() bool {
	return len(c.Pod.Spec.SchedulingGates) == 0 && len(c.Verdict.Feasible()) == 0 && c.Cluster.State.Unread["Node"] == ""
}
