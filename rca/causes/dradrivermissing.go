package causes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// draDriverMissing: nobody publishes devices of the driver that is asked for, on
// any node, or on one that the driver's plugin runs on.
var draDriverMissing = Rule{ID: diagnosis.DRADriverMissing, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	switch c.Claims.CauseOn(n, b.Blocker) {
	case "", diagnosis.DRAClaimMissing, diagnosis.DRAClassMissing:
		return nil
	case diagnosis.DRADriverMissing:
	default:
		u := Unlisted(c, n)
		if u == nil {
			return nil
		}
		c.entitle(diagnosis.DRADriverMissing, "devices of "+u.On+" are not listed")
		return &finding{diagnosis.Proven, u.Says(), u.Evidence()}
	}
	f := &finding{Certainty: diagnosis.Proven}
	for _, a := range c.Claims.Driverless() {
		says, claims := unpublished(c, c.Claims.DriversOf(a))
		for _, driver := range c.Claims.DriversOf(a) {
			if why := c.Claims.Incomplete[driver]; why != "" {
				says, claims = "driver "+driver+" has not published all: "+why, published(c, driver)
			}
		}
		if f.Says == "" {
			f.Says = says
		}
		dra := c.DRADriver(a, n)
		if dra != nil && f.Evidence == nil {
			f.Says, f.Certainty = f.Says+": "+dra.Says, dra.Certainty
		}
		f.Evidence = append(f.Evidence, diagnosis.Fact(a.Ref, "request "+a.Name+" asks DeviceClass "+a.Class, a.Claims()...), diagnosis.Fact("DeviceClass/"+a.Class, says, append(claims, diagnosis.That("", "", diagnosis.Exists, ""))...))
		if dra != nil {
			f.Evidence = append(f.Evidence, about(a.Class, dra))
		}
	}
	return f
}}

// Unlisted is that a driver which is asked for runs on the node and lists none of its devices; nil where that is not so.
func Unlisted(c *Case, n *view.Node) *kubelet.Unlisted {
	return kubelet.UnlistedOn(c.Cluster, c.Claims.Lacked(n.Name), n)
}

// published claims of how many ResourceSlices those of a driver say that their pool is.
func published(c *Case, driver string) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, s := range c.Cluster.State.ResourceSlices {
		if s.Spec.Driver == driver {
			out = append(out, diagnosis.That("spec.pool.resourceSliceCount", "", diagnosis.Is, strconv.FormatInt(s.Spec.Pool.ResourceSliceCount, 10)).Of("ResourceSlice/"+s.Name))
		}
	}
	return out
}

// unpublished says what there is of the drivers that are wanted, of any where none is named: no
// ResourceSlice, or slices that list no device.
func unpublished(c *Case, drivers []string) (says string, claims []diagnosis.Claim) {
	var empty []string
	for _, s := range c.Cluster.State.ResourceSlices {
		if len(s.Spec.Devices) == 0 && (len(drivers) == 0 || slices.Contains(drivers, s.Spec.Driver)) {
			ref := "ResourceSlice/" + s.Name
			empty = append(empty, s.Name)
			claims = append(claims, diagnosis.That("spec.driver", "", diagnosis.Is, s.Spec.Driver).Of(ref), diagnosis.That("count(spec.devices)", "", diagnosis.Is, "0").Of(ref))
			if s.Spec.NodeName != nil {
				claims = append(claims, diagnosis.That("spec.nodeName", "", diagnosis.Is, *s.Spec.NodeName).Of(ref))
			}
		}
	}
	wanted := strings.Join(drivers, " or ")
	switch {
	case len(empty) > 0 && wanted != "":
		return fmt.Sprintf("driver %s has published no device: ResourceSlice %s lists none", wanted, empty[0]), claims
	case len(empty) > 0:
		return "no driver has published a device", claims
	case wanted == "":
		return "no ResourceSlice of any driver exists", []diagnosis.Claim{diagnosis.That("", "", diagnosis.Absent, "").Of("ResourceSlice/*")}
	}
	for _, driver := range drivers {
		claims = append(claims, diagnosis.That("spec.driver", "", diagnosis.IsNot, driver).Of("ResourceSlice/*"))
	}
	return "no ResourceSlice of driver " + wanted + " exists", claims
}

// DRADriver is why NVIDIA's driver does not serve a request: on a node or, where that is not seen, on the first on which it
// is; nil where it is on none, or another is asked for.
func (c *Case) DRADriver(a *devices.Ask, on *view.Node) *stack.DRA {
	for _, driver := range c.Claims.DriversOf(a) {
		if c.Claims.Incomplete[driver] != "" {
			continue
		}
		if dra := stack.Of(c.Cluster).DRADriver(driver, on); dra != nil {
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
