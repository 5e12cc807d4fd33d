package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// gpusInUse: whole GPUs exist, enough for the request, and are requested by
// others.
var gpusInUse = Rule{ID: diagnosis.GPUsInUse, gpu: true, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.whole()
	if !ok || b.allocatable < a.Count {
		return nil
	}
	return &finding{diagnosis.Proven, "all whole GPUs are held", []diagnosis.Evidence{n.UsedOf(a, b.allocatable)}}
}}
