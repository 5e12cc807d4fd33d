package outside

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// AnotherNode is what is left where no node has what is asked, or those who hold it cannot leave for it: they are its own,
// say. Where nothing speaks of a GPU and a device plugin runs, its log says first what it has looked for and not found.
func AnotherNode(c *edit.Workload, id diagnosis.CauseID) edit.Change {
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: id, Manual: true, Risk: diagnosis.LowRisk, Untestable: "the node is not there yet",
		Title: "add a node with such GPUs" + orLess(c, id), Commands: []string{
			"kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable", "# then scale a node pool with the cloud's or the autoscaler's own command"}}
	if p := findsNone(c); p != nil {
		ch.Title = fmt.Sprintf("see why %s/%s on %s finds no GPU if the machine has one, or add a node with such GPUs", p.Namespace, p.Name, p.Spec.NodeName)
		ch.Commands = append([]string{fmt.Sprintf("kubectl -n %s logs %s --tail=50  # no NVML library: no driver on the machine, or its runtime does not hand it out", p.Namespace, p.Name)}, ch.Commands...)
	}
	return ch
}

// orLess is what the workload could do without, where there is something: of one GPU nothing less is one.
func orLess(c *edit.Workload, id diagnosis.CauseID) string {
	name := c.WorkloadName()
	switch {
	case id == diagnosis.GPURequestTooLarge && !c.Cluster.HasGPUs():
		return cmp.Or(makers.Instead(c.Cluster, view.WholeGPU, name), ", or let "+name+" ask for none: no node is seen to have any")
	case len(c.Asks) != 1 || c.Asks[0].Count != 1 || c.Asks[0].Profile != "":
		return ", or let " + name + " ask for less"
	case c.HeldByOwn(id):
		return ", or let " + name + " have fewer pods at once: its own hold them all"
	}
	return ""
}

// findsNone is the device plugin's pod on the first node that has one, in a cluster without a node that has GPUs; nil for none.
func findsNone(c *edit.Workload) *corev1.Pod {
	if c.Cluster.HasGPUs() {
		return nil
	}
	for _, n := range c.Cluster.SortedNodes() {
		if p := parts.Of(c.Cluster).Pod(n, parts.Plugin); p != nil {
			return p
		}
	}
	return nil
}
