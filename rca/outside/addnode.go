package outside

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// inUse are the causes that one more machine like those that there are removes.
var inUse = []diagnosis.CauseID{diagnosis.GPUsInUse, diagnosis.MIGInstancesInUse, diagnosis.MIGFull, diagnosis.HostResourcesShort}

// AddByHand is for GPUs that are held by who does not end by itself, in a cluster whose pools nobody grows: to wait leads nowhere,
// and a person can give the pool more machines.
func AddByHand(c *edit.Workload) []edit.Change {
	if c.Unborn || len(c.Pod.Spec.SchedulingGates) > 0 || c.IsOwn(diagnosis.WorkloadDeadlock) || c.Elsewhere(c.Pod) != "" {
		return nil // others come first, or have their own for it
	}
	p := growable(c)
	if p == nil || !nobodyGrows(c) || !heldForGood(c) {
		return nil
	}
	ch := Growing(diagnosis.GPUsInUse, fmt.Sprintf("give node pool %s %s more by hand: its own would hold the pod, and no autoscaler is seen that grows it", p.name, view.CountOf(p.more(c), "machine")), p.add(c)...)
	ch.Until, ch.Untestable = "node pool "+p.name+" has "+view.CountOf(p.more(c), "node")+" more", ""
	return []edit.Change{ch}
}

// nobodyGrows says whether nothing is seen of an autoscaler: no word of one about the pod, none of its objects, none that runs.
func nobodyGrows(c *edit.Workload) bool {
	o := c.Cluster.Outlook()
	return o.Status == nil && len(o.Pools)+len(o.Claims)+len(o.Refused)+len(o.Failures) == 0 && c.Growth().Said == "" && autoscaler(c) == nil &&
		!slices.ContainsFunc(c.Cluster.State.Deployments, func(d *appsv1.Deployment) bool { return d.Name == "karpenter" })
}

// nodePool is a cloud's pool of which a fresh machine would hold the pod, one of its nodes, and how many it has.
type nodePool struct {
	name  string
	like  *view.Node
	count int
}

// growable is such a pool by nodes that have too little left and nothing else against the pod; nil where no label names one.
func growable(c *edit.Workload) *nodePool {
	var p *nodePool
	for _, j := range c.Judged {
		n := c.Cluster.Nodes[j.Name]
		if p != nil || n == nil || !onlyFull(j) || !scaling.HoldsFresh(n.Node, c.Wants) {
			continue
		}
		if of := scaling.PoolOf(n.Node); of != "" && !broken(c, of) {
			p = &nodePool{name: of, like: n}
		}
	}
	if p == nil {
		return nil
	}
	for _, n := range c.Cluster.SortedNodes() {
		if scaling.PoolOf(n.Node) == p.name {
			p.count++
		}
	}
	return p
}

// broken says whether a machine of that pool has GPUs that are not handed out: another one may come as that one has.
func broken(c *edit.Workload, pool string) bool {
	return slices.ContainsFunc(c.Judged, func(j diagnosis.NodeBlockers) bool {
		n := c.Cluster.Nodes[j.Name]
		return n != nil && scaling.PoolOf(n.Node) == pool && slices.ContainsFunc(j.Blockers, func(b diagnosis.Blocker) bool {
			return b.Cause == diagnosis.DriverNotReady || b.Cause == diagnosis.RuntimeNotConfigured || b.Cause == diagnosis.DevicePluginDown || b.Cause == diagnosis.GPUStackNotOnNode
		})
	})
}

// more is how many machines all of the incident's pods want.
func (p *nodePool) more(c *edit.Workload) int {
	each := int64(math.MaxInt64)
	for name, asked := range c.Wants {
		if has := p.like.Status.Allocatable[name]; asked.MilliValue() > 0 {
			each = min(each, has.MilliValue()/asked.MilliValue())
		}
	}
	pods := int64(max(1, c.Incident.Waiting, c.StillToCome()))
	return int((pods + each - 1) / max(1, each))
}

// heldForGood says whether nobody who holds of what the pod asks, on nodes that have too little left of it and nothing else against
// it, ends by itself.
func heldForGood(c *edit.Workload) bool {
	held := false
	for _, j := range c.Judged {
		n := c.Cluster.Nodes[j.Name]
		if n == nil || !onlyFull(j) {
			continue
		}
		for _, p := range n.Pods {
			for name := range c.Wants {
				q := n.Requests[p][name]
				if q.IsZero() {
					continue
				}
				if len(view.Endless([]*corev1.Pod{p})) == 0 {
					return false
				}
				held = true
			}
		}
	}
	return held
}

// add are the cloud's commands that give the pool that many machines more than it has.
func (p *nodePool) add(c *edit.Workload) []string {
	to := p.count + p.more(c)
	cluster := cmp.Or(p.like.Labels["alpha.eksctl.io/cluster-name"], "CLUSTER")
	var out []string
	switch provider(c) {
	case "aws":
		out = []string{fmt.Sprintf("aws eks update-nodegroup-config --cluster-name %s --nodegroup-name %s --scaling-config desiredSize=%d  # with maxSize=%d too where that is less", cluster, p.name, to, to)}
	case "gce":
		out = []string{fmt.Sprintf("gcloud container clusters resize CLUSTER --node-pool %s --num-nodes %d  # in each of its zones", p.name, to)}
	case "azure":
		out = []string{fmt.Sprintf("az aks nodepool scale --resource-group GROUP --cluster-name CLUSTER --name %s --node-count %d", p.name, to)}
	default:
		out = []string{fmt.Sprintf("# give pool %s %d machines with the cloud's own command", p.name, to)}
	}
	return append(out, fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name))
}

// likeOfGrowth is a node of the pool or group that an autoscaler's words are about, of which a fresh one would hold the pod; nil
// where none is seen.
func likeOfGrowth(c *edit.Workload) *view.Node {
	g := c.Growth()
	for _, j := range c.Judged {
		n := c.Cluster.Nodes[j.Name]
		if n == nil || !onlyFull(j) || !scaling.HoldsFresh(n.Node, c.Wants) {
			continue
		}
		pool := scaling.PoolOf(n.Node)
		if slices.ContainsFunc(g.Pools, func(p scaling.Pool) bool { return p.Name == n.Labels[scaling.LabelPool] }) || slices.ContainsFunc(g.Groups, func(of scaling.Group) bool { return of.Of(pool) }) {
			return n
		}
	}
	return nil
}

// onlyFull says whether a node has too little left for the pod, and nothing else against it.
func onlyFull(j diagnosis.NodeBlockers) bool {
	return len(j.Blockers) > 0 && !slices.ContainsFunc(j.Blockers, func(b diagnosis.Blocker) bool { return !slices.Contains(inUse, b.Cause) })
}
