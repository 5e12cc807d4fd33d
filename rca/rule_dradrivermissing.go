package rca

import (
	"strings"
)

// draDriverMissing: nobody publishes devices of the driver that is asked for, on
// any node.
var draDriverMissing = Rule{ID: DRADriverMissing, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if c.claims.causeOn(n, b.Blocker) != DRADriverMissing {
		return nil
	}
	f := &finding{certainty: Proven}
	for _, a := range c.claims.driverless() {
		wanted := strings.Join(c.claims.driversOf(a), " or ")
		says := "no ResourceSlice of driver " + wanted + " exists"
		if wanted == "" {
			says = "no ResourceSlice of any driver exists"
		}
		for _, driver := range c.claims.driversOf(a) {
			if why := c.claims.incomplete[driver]; why != "" {
				says = "driver " + driver + " has not published all: " + why
			}
		}
		if f.says == "" {
			f.says = says
		}
		f.evidence = append(f.evidence, Evidence{a.ref, "request " + a.name + " asks DeviceClass " + a.class}, Evidence{"DeviceClass/" + a.class, says})
	}
	return f
}}
