package causes

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// draDriverMissing: nobody publishes devices of the driver that is asked for, on
// any node.
var draDriverMissing = Rule{ID: diagnosis.DRADriverMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRADriverMissing {
		return nil
	}
	f := &finding{certainty: diagnosis.Proven}
	for _, a := range c.Claims.Driverless() {
		wanted := strings.Join(c.Claims.DriversOf(a), " or ")
		says := "no ResourceSlice of driver " + wanted + " exists"
		if wanted == "" {
			says = "no ResourceSlice of any driver exists"
		}
		for _, driver := range c.Claims.DriversOf(a) {
			if why := c.Claims.Incomplete[driver]; why != "" {
				says = "driver " + driver + " has not published all: " + why
			}
		}
		if f.says == "" {
			f.says = says
		}
		f.evidence = append(f.evidence, diagnosis.Evidence{Ref: a.Ref, Fact: "request " + a.Name + " asks DeviceClass " + a.Class}, diagnosis.Evidence{Ref: "DeviceClass/" + a.Class, Fact: says})
	}
	return f
}}
