package refused

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/queues/full"
)

// forAll is for the group that gets no pods, for all nodes together have too little for it (Volcano's plugin overcommit):
// no queue is full. Where one pod of it asks for more than any node has, nobody who ends, and no queue, would help.
func forAll(c *edit.Workload, by string, ch edit.Change) []edit.Change {
	if name, most := beyondEveryNode(c); name != "" {
		larger := outside.Growing(diagnosis.SchedulerRefused, fmt.Sprintf("have a larger node: one pod asks for %s %s, and the largest node has %s", c.Incident.Requests[name], name, most))
		larger.Commands = []string{"kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable", "# then a machine that has more, with the cloud's own command"}
		return []edit.Change{askLess(c, fmt.Sprintf("ask for less %s a pod than the %s that the largest node has", name, most)), larger}
	}
	ch.Title = "see who holds what of the nodes: all of them together have too little left for its group, by " + by + "'s own count"
	ch.Commands = append(ch.Commands, "kubectl get podgroups.scheduling.volcano.sh -A  # Inqueue counts as used", "kubectl describe nodes | grep -A 8 'Allocated resources'")
	if all := c.Queue.Counted(); len(all) > 0 {
		uncount(&ch, &all[0])
	}
	if left := full.Podless(c.Queue); len(left) > 0 {
		forget(&ch, left)
	}
	return append(outside.GrowForAll(c, by), ch, askLess(c, "ask for less, or for fewer members at a time"))
}

// forget has groups deleted of which no pod is left: they count as using what they asked for.
func forget(ch *edit.Change, left []*unstructured.Unstructured) {
	ch.Title = "delete PodGroup " + left[0].GetName() + ", which counts as using nodes and has no pod"
	if n := len(left) - 1; n > 0 {
		ch.Title = fmt.Sprintf("delete PodGroup %s and %d more, which count as using nodes and have no pod", left[0].GetName(), n)
	}
	var commands []string
	for _, g := range left {
		commands = append(commands, fmt.Sprintf("kubectl -n %s delete podgroups.scheduling.volcano.sh %s  # once nobody is to make pods of it", g.GetNamespace(), g.GetName()))
	}
	ch.Risk, ch.Commands = diagnosis.LowRisk, append(commands, ch.Commands...)
}

// beyondEveryNode is what one pod asks more of than any node has, and how much the largest has; empty where there is none such.
func beyondEveryNode(c *edit.Workload) (name, most string) {
	nodes := c.Cluster.SortedNodes()
	for _, name := range slices.Sorted(maps.Keys(c.Incident.Requests)) {
		asked, err := resource.ParseQuantity(c.Incident.Requests[name])
		if err != nil || len(nodes) == 0 {
			continue
		}
		var most resource.Quantity
		for _, n := range nodes {
			if has := n.Status.Allocatable[corev1.ResourceName(name)]; has.Cmp(most) > 0 {
				most = has
			}
		}
		if asked.Cmp(most) > 0 && !most.IsZero() {
			return name, most.String()
		}
	}
	return "", ""
}
