package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draNoDeviceMatches: there are devices, and even if nobody held one none would do.
// Which clause of which selector fails is asked of the scheduler's own CEL
// environment, device by device.
var draNoDeviceMatches = Rule{ID: diagnosis.DRANoDeviceMatches, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRANoDeviceMatches {
		return nil
	}
	if p := c.Claims.Pinned(); p != nil && p.Node != n.Name {
		return &finding{diagnosis.Proven, p.Text(), p.Evidence(n.Name)}
	}
	f := &finding{Certainty: diagnosis.Proven}
	for _, a := range c.Claims.Asks {
		if says, evidence := c.Claims.Misses(a, n.Name); says != "" {
			if f.Says == "" {
				f.Says = says
			}
			f.Evidence = append(f.Evidence, evidence...)
		}
	}
	if f.Says == "" {
		f.Says, f.Evidence = c.Claims.Together(n)
	}
	f.Evidence = append(f.Evidence, noneServes(c, n))
	return f
}}

// noneServes says that no device of a node serves the claims, and how many there are where one ResourceSlice
// lists them all.
func noneServes(c *Case, n *view.Node) diagnosis.Evidence {
	here, lists, offered := len(c.Claims.ByNode[n.Name]), 0, 0
	for _, s := range c.Cluster.State.ResourceSlices {
		if s.Spec.NodeName != nil && *s.Spec.NodeName == n.Name {
			lists, offered = lists+1, len(s.Spec.Devices)
		}
	}
	fact := "it has devices, and none serves the claims"
	switch {
	case here == 0:
		fact = "no device, so none serves the claims"
	case here == 1 && lists == 1 && offered == 1:
		fact = "1 device, and it does not serve the claims"
	case lists == 1 && offered == here:
		fact = fmt.Sprintf("%d devices, none serves the claims", here)
	}
	return diagnosis.Fact(n.Ref(), fact, devices.OfferedOn(c.Cluster.State.ResourceSlices, n.Name)...)
}
