package causes

import (
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draSelectorError: a selector does not compile, or not evaluate on a device. The
// scheduler then gives up the whole attempt, also for other nodes (allocator.go:
// such an error is fatal).
var draSelectorError = Rule{ID: diagnosis.DRASelectorError, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRASelectorError {
		return nil
	}
	f := c.Claims.FaultOn(n.Name)
	if f == nil {
		f = c.Claims.FaultOnAny()
	}
	what := "does not compile"
	if f.Device != nil {
		what = "cannot be evaluated"
	}
	out := &finding{Certainty: diagnosis.Proven, Says: "selector " + devices.ShortClause(f.Text) + " " + what + ": " + f.Err}
	for _, a := range c.Claims.Asks {
		ref := a.Ref
		if f.Class {
			ref = "DeviceClass/" + a.Class
		}
		if other := c.Claims.Fault(a, c.Claims.Devices); other != nil && other.Clause == f.Clause {
			out.Evidence = append(out.Evidence, diagnosis.Fact(ref, "request "+a.Name+": "+f.Text+": "+f.Err, diagnosis.That("spec", "", diagnosis.Contains, f.Text)))
		}
	}
	if f.Device != nil {
		out.Evidence = append(out.Evidence, diagnosis.Fact(f.Device.Ref(), "device "+f.Device.ID.Name+" of driver "+f.Device.ID.Driver,
			diagnosis.That("spec.driver", "", diagnosis.Is, f.Device.ID.Driver), diagnosis.That("spec.devices[name="+f.Device.ID.Name+"]", "", diagnosis.Exists, "")))
		last := &out.Evidence[len(out.Evidence)-1]
		last.Claims = append(last.Claims, devices.OfferedOn(c.Cluster.State.ResourceSlices, n.Name)...)
	}
	return out
}}
