package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draDevicesInUse: the scheduler's own code would serve the claims if nobody held a
// device. Counters that partitions of one device share are counted by it.
var draDevicesInUse = Rule{ID: diagnosis.DRADevicesInUse, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRADevicesInUse {
		return nil
	}
	says, evidence := c.Claims.InUseOn(n)
	return &finding{diagnosis.Proven, says, evidence}
}}
