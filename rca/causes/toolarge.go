package causes

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/queues/full"
)

// TooLargeForAll says of a pod that its queue never admits whether it asks for more GPUs than any node has, and the queue could take
// as many as there are: a larger quota helps nobody, and asking for fewer takes both away.
func TooLargeForAll(c *Case) bool {
	w, asks, cut := c.Queue.Queued(), maps.Clone(c.Wants), false
	for _, a := range c.Asks {
		most := int64(0)
		for _, n := range c.Cluster.SortedNodes() {
			most = max(most, n.Allocatable(a.Resource))
		}
		if a.Profile == "" && most > 0 && most < a.Count {
			asks[a.Resource], cut = *resource.NewQuantity(most, resource.DecimalSI), true
		}
	}
	return cut && w != nil && full.CouldTake(w, asks)
}
