package rca

// migInstancesInUse judges by counts of live objects alone.
var migInstancesInUse = Rule{ID: MIGInstancesInUse, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	a, ok := b.mig()
	if !ok || b.allocatable < a.count {
		return nil
	}
	return &finding{Proven, "its " + a.profile + " instances are all held", []Evidence{n.usedOf(a, b.allocatable)}}
}}
