package rca

// draClassMissing: a request names a DeviceClass that nobody made.
var draClassMissing = Rule{ID: DRAClassMissing, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if c.claims.causeOn(n, b.Blocker) != DRAClassMissing {
		return nil
	}
	gone := c.claims.classless()
	f := &finding{certainty: Proven, says: "DeviceClass " + gone[0].class + " does not exist"}
	for _, a := range gone {
		f.evidence = append(f.evidence, Evidence{a.ref, "request " + a.name + " names DeviceClass " + a.class}, Evidence{"DeviceClass/" + a.class, "does not exist"})
	}
	return f
}}
