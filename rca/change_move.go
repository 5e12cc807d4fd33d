package rca

import (
	corev1 "k8s.io/api/core/v1"
)

// move is the cheapest eviction all of whose victims may find a place elsewhere, where
// that is not the cheapest of all: of two pods that cost the same, or almost, the one
// that lands is the one to go.
func (c *Bench) move(n *nodeView, cause CauseID, lack deficits, cheapest []*corev1.Pod) (change, bool) {
	lands := func(p *corev1.Pod) bool { return c.mayLand(n, p, lack) }
	all, some := true, false
	for _, p := range cheapest {
		all = all && lands(p)
	}
	for _, p := range n.pods {
		some = some || lands(p)
	}
	if all || !some {
		return change{}, false
	}
	victims, ok := c.cheapestOf(n, lack, lands)
	if !ok || len(victims) == 0 || c.allIdle(victims) {
		return change{}, false
	}
	ch := c.evict(n, cause, victims)
	ch.kind = MovePods
	return ch, true
}

// mayLand says whether some other open node has as much free of what the node lacks as
// the pod holds of it. Whether it is placed there the proof says.
func (c *Bench) mayLand(n *nodeView, p *corev1.Pod, lack deficits) bool {
	if !comesBack(p) {
		return false
	}
	for name := range lack {
		if c.world.mostFree(name, n) < n.contribution(p, name) {
			return false
		}
	}
	return true
}

// roomiest are the two open nodes that have most free of a resource, in milli-units.
type roomiest struct {
	first          *nodeView
	most, mostElse int64
}

// mostFree is what the roomiest open node but one has free of a resource. It is looked
// up once for the cluster.
func (w *world) mostFree(name corev1.ResourceName, but *nodeView) int64 {
	r, known := w.roomiest[name]
	if !known {
		for _, v := range w.sortedNodes() {
			if v.Spec.Unschedulable {
				continue
			}
			q := v.free(name)
			switch free := q.MilliValue(); {
			case free > r.most:
				r.first, r.most, r.mostElse = v, free, r.most
			case free > r.mostElse:
				r.mostElse = free
			}
		}
		w.roomiest[name] = r
	}
	if r.first == but {
		return r.mostElse
	}
	return r.most
}
