package view

import (
	corev1 "k8s.io/api/core/v1"
)

// roomiest are the two open nodes that have most free of a resource, in milli-units.
type roomiest struct {
	first          *Node
	most, mostElse int64
}

// MostFree is what the roomiest open node, leaving one out, has free of a resource. The
// cluster is searched once.
func (w *Cluster) MostFree(name corev1.ResourceName, but *Node) int64 {
	r, known := w.roomiest[name]
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
		w.roomiest[name] = r
	}
	if r.first == but {
		return r.mostElse
	}
	return r.most
}
