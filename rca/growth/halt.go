package growth

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// gpuLabels are those by which the cluster autoscaler takes a node for one with GPUs, by cloud
// (cloudprovider/*, GPULabel).
var gpuLabels = []string{"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "kubernetes.azure.com/accelerator", "accelerator", "cluster-api/accelerator"}

// gpuNames are the resources one of which such a node has to offer (utils/gpu/gpu.go); instances
// of MIG and shares under another name are none of them.
var gpuNames = []corev1.ResourceName{view.WholeGPU, "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx"}

// byHalt tells of an autoscaler that runs and looks at no pod: it takes the cluster for unhealthy,
// or gives each of its rounds up. It then says nothing of pods.
func (c *Case) byHalt(g *Growth, o *scaling.Outlook) {
	now := c.Cluster.State.Now
	if len(g.told) > 0 || o.Status == nil || o.Status.State == "" || len(o.Pools) > 0 || !c.stopped() || c.Cluster.State.Unread["Event"] != "" ||
		o.Status.Updated.IsZero() || now.Sub(o.Status.Updated) > silentAfter || now.Sub(c.Pod.CreationTimestamp.Time) < promised {
		return
	}
	bare := bareOf(c.Cluster)
	h := o.Status.Wide.Health
	status := "data[status].clusterWide.health"
	switch {
	case h.Status == "Unhealthy":
		unready := h.NodeCounts.Registered.Unready
		says := fmt.Sprintf("the cluster autoscaler does nothing while it takes the cluster for unhealthy: of %d nodes %d are not ready to it", h.NodeCounts.Registered.Total, unready.Total)
		fact := fmt.Sprintf("cluster-wide Unhealthy, %d nodes registered, %d of them unready", h.NodeCounts.Registered.Total, unready.Total)
		claims := []diagnosis.Claim{diagnosis.That(status+".status", "", diagnosis.Is, h.Status), diagnosis.That(status+".nodeCounts.registered.total", "", diagnosis.Is, strconv.Itoa(h.NodeCounts.Registered.Total)), diagnosis.That(status+".nodeCounts.registered.unready.total", "", diagnosis.Is, strconv.Itoa(unready.Total))}
		c.halted(g, o, diagnosis.Likely, says, bare, diagnosis.Fact(o.Status.Ref, fact, claims...))
	case len(bare) > 0:
		// autoscaler issue 10301: from 1.35 on, what the cluster has in all is counted first, and a node
		// with such a label and without its GPUs ends the count.
		c.halted(g, o, diagnosis.Possible, "the cluster autoscaler runs and has said nothing of the pod", bare,
			diagnosis.Fact(o.Status.Ref, "autoscalerStatus "+o.Status.State, diagnosis.That("data[status].autoscalerStatus", "", diagnosis.Is, o.Status.State)))
	}
}

// halted tells of the nodes for which the autoscaler stands still, where that can be seen.
func (c *Case) halted(g *Growth, o *scaling.Outlook, certainty diagnosis.Certainty, says string, bare []*view.Node, evidence ...diagnosis.Evidence) {
	g.Bar = scaling.NotReady
	groups, _, _ := c.couldHold(o, (*scaling.Group).Grows)
	g.Groups, g.Halted = groups, true
	for i := range groups {
		evidence = append(evidence, statusOf(o, &groups[i]))
	}
	if len(bare) > 0 {
		says += fmt.Sprintf("; %s labelled as having GPUs, without one under a name that it knows", view.CountOf(len(bare), "node"))
		for _, n := range bare {
			g.Bare = append(g.Bare, n.Name)
		}
		key := gpuLabel(bare[0])
		evidence = append(evidence, diagnosis.Fact("Node/"+bare[0].Name, "label "+key+" is there, and no "+view.WholeGPU+" is offered", bare[0].Labelled(key)...))
	}
	g.tell(diagnosis.AutoscalerCannotHelp, certainty, says, evidence...)
}

// bareOf are the nodes that the autoscaler waits for though they are Ready.
func bareOf(w *view.Cluster) []*view.Node {
	var out []*view.Node
	for _, n := range w.SortedNodes() {
		if gpuLabel(n) == "" || n.ReadySince().IsZero() || w.State.Now.Sub(n.ReadySince()) < promised {
			continue
		}
		offers := false
		for _, name := range gpuNames {
			offers = offers || n.Allocatable(name) > 0
		}
		if !offers {
			out = append(out, n)
		}
	}
	return out
}

func gpuLabel(n *view.Node) string {
	for _, key := range gpuLabels {
		if _, has := n.Labels[key]; has {
			return key
		}
	}
	return ""
}
