package rca

// gpusInUse: whole GPUs exist, enough for the request, and are requested by
// others.
var gpusInUse = Rule{ID: GPUsInUse, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.whole()
	if !ok || b.allocatable < a.count {
		return nil
	}
	return &finding{Proven, "all whole GPUs are held", []Evidence{n.usedOf(a, b.allocatable)}}
}}
