package rca

// draSelectorError: a selector does not compile, or not evaluate on a device. The
// scheduler then gives up the whole attempt, also for other nodes (allocator.go:
// such an error is fatal).
var draSelectorError = Rule{ID: DRASelectorError, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if c.claims.causeOn(n, b.Blocker) != DRASelectorError {
		return nil
	}
	f := c.claims.faultOn(n.Name)
	if f == nil {
		f = c.claims.faultOnAny()
	}
	what := "does not compile"
	if f.device != nil {
		what = "cannot be evaluated"
	}
	out := &finding{certainty: Proven, says: "selector " + short(f.text) + " " + what + ": " + f.err}
	for _, a := range c.claims.asks {
		ref := a.ref
		if f.class {
			ref = "DeviceClass/" + a.class
		}
		if other := c.claims.fault(a, c.claims.devices); other != nil && other.clause == f.clause {
			out.evidence = append(out.evidence, Evidence{ref, "request " + a.name + ": " + f.text + ": " + f.err})
		}
	}
	if f.device != nil {
		out.evidence = append(out.evidence, Evidence{f.device.ref(), "device " + f.device.id.name + " of driver " + f.device.id.driver})
	}
	return out
}}

func (v *claimView) faultOnAny() *fault {
	for _, a := range v.asks {
		if f := v.fault(a, v.devices); f != nil {
			return f
		}
	}
	return nil
}
