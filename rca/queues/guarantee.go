package queues

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Overguarantee is a Queue of Volcano that is guaranteed more of a resource than all nodes have.
type Overguarantee struct {
	Queue           string
	Resource        corev1.ResourceName
	Guarantees, Has resource.Quantity
}

// Overguaranteed is the first by name; nil for none. Volcano's scheduler takes what queues are guaranteed off what there is,
// and ends where too little is left (plugins/proportion, plugins/capacity; volcano issue 4076).
func Overguaranteed(c *Case) *Overguarantee {
	if c.SchedulerName() != "volcano" || c.Cluster.State.Unread["Node"] != "" {
		return nil
	}
	var first *Overguarantee
	for _, q := range c.Cluster.State.Queues.Volcano {
		guaranteed := Quantities(q, "spec", "guarantee", "resource")
		for _, name := range slices.Sorted(maps.Keys(guaranteed)) {
			var has resource.Quantity
			for _, n := range c.Cluster.SortedNodes() {
				has.Add(n.Status.Allocatable[name])
			}
			if g := guaranteed[name]; g.Cmp(has) > 0 && (first == nil || q.GetName() < first.Queue) {
				first = &Overguarantee{q.GetName(), name, g, has}
			}
		}
	}
	return first
}
