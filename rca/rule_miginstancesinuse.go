package rca

import (
	"fmt"

	"github.com/unpend/unpend/rca/whatif"
)

// migInstancesInUse judges by counts of live objects alone.
var migInstancesInUse = Rule{ID: MIGInstancesInUse, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	a, ok := c.migShort(n, b)
	if !ok || n.allocatable(a.resource) < a.count {
		return nil
	}
	return &finding{Proven, fmt.Sprintf("its %s instances are all held", a.profile), []Evidence{n.useOf(a)}}
}}
