package changes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// move is the cheapest eviction after which every victim may find a place elsewhere. It
// is offered where it is not the cheapest of all: of two pods that cost the same, or
// almost, the one that lands is the one to go.
func (c *Bench) move(n *view.Node, cause diagnosis.CauseID, lack view.Deficits, cheapest []*corev1.Pod) (edit.Change, bool) {
	lands := func(p *corev1.Pod) bool { return c.mayLand(n, p, lack) }
	all, some := true, false
	for _, p := range cheapest {
		all = all && lands(p)
	}
	for _, p := range n.Pods {
		some = some || lands(p)
	}
	if all || !some {
		return edit.Change{}, false
	}
	victims, ok := c.CheapestOf(n, lack, lands)
	if !ok || c.AllIdle(victims) {
		return edit.Change{}, false
	}
	ch := edit.EvictFrom(n, cause, victims)
	ch.Kind = diagnosis.MovePods
	return ch, true
}

// mayLand says whether some other open node has as much free of what the node lacks as
// the pod holds of it, and of the devices that it holds: who holds GPUs does not land where
// only a place for a pod is free. Whether it is placed there the proof says.
func (c *Bench) mayLand(n *view.Node, p *corev1.Pod, lack view.Deficits) bool {
	if len(c.Cluster.State.LostBy([]*corev1.Pod{p}).Pods) > 0 {
		return false
	}
	for name := range lack {
		if mostFree(c.Cluster, name, n) < n.Contribution(p, name) {
			return false
		}
	}
	for name, q := range n.Requests[p] {
		if strings.Contains(string(name), "/") && !q.IsZero() && mostFree(c.Cluster, name, n) < n.Contribution(p, name) {
			return false
		}
	}
	return true
}
