package causes

import (
	"cmp"
	"strings"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// draDriverMissing: nobody publishes devices of the driver that is asked for, on
// any node.
var draDriverMissing = Rule{ID: diagnosis.DRADriverMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if c.Claims.CauseOn(n, b.Blocker) != diagnosis.DRADriverMissing {
		return nil
	}
	f := &finding{Certainty: diagnosis.Proven}
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
		if f.Says == "" {
			f.Says = says
		}
		dra := c.DRADriver(a)
		if dra != nil && f.Evidence == nil {
			f.Says += ": " + dra.Says
		}
		f.Evidence = append(f.Evidence, diagnosis.Fact(a.Ref, "request "+a.Name+" asks DeviceClass "+a.Class, diagnosis.That("spec", "", diagnosis.Contains, a.Class)), diagnosis.Fact("DeviceClass/"+a.Class, says, diagnosis.That("", "", diagnosis.Exists, "")))
		if dra != nil {
			f.Evidence = append(f.Evidence, about(a.Class, dra))
		}
	}
	return f
}}

// DRADriver is why NVIDIA's driver does not serve a request; nil where that is not seen, or
// another is asked for.
func (c *Case) DRADriver(a *devices.Ask) *stack.DRA {
	for _, driver := range c.Claims.DriversOf(a) {
		if c.Claims.Incomplete[driver] != "" {
			continue
		}
		if dra := stack.Of(c.Cluster).DRADriver(driver); dra != nil {
			return dra
		}
	}
	return nil
}

// about is what shows why a class is not served; of the class itself where no object does.
func about(class string, dra *stack.DRA) diagnosis.Evidence {
	e := dra.Evidence
	e.Ref = cmp.Or(e.Ref, "DeviceClass/"+class)
	return e
}
