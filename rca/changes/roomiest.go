package changes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// roomiest are the two open nodes that have most free of a resource, in milli-units.
type roomiest struct {
	first          *view.Node
	most, mostElse int64
}

// room is where most is free of each resource that was asked for.
type room map[corev1.ResourceName]roomiest

func unasked(*view.Cluster) *room { return &room{} }

// mostFree is what the roomiest open node, leaving one out, has free of a resource. The
// cluster is searched once.
func mostFree(w *view.Cluster, name corev1.ResourceName, but *view.Node) int64 {
	all := *view.Kept(w, unasked)
	r, known := all[name]
	if !known {
		for _, v := range w.SortedNodes() {
			if v.Spec.Unschedulable || v.Taken() != "" {
				continue
			}
			q := v.Free(name)
			switch free := q.MilliValue(); {
			case free > r.most:
				r.first, r.most, r.mostElse = v, free, r.most
			case free > r.mostElse:
				r.mostElse = free
			}
		}
		all[name] = r
	}
	if r.first == but {
		return r.mostElse
	}
	return r.most
}
