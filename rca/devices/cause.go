package devices

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Unreadable names a kind without which the devices of this pod cannot be
// judged, and why it was not read.
func (v *Claims) Unreadable() (kind, why string) {
	unread := v.asker.Cluster.State.Unread
	for _, kind := range []string{"ResourceClaim", "DeviceClass", "ResourceSlice"} {
		if kind == "ResourceClaim" && len(v.pod.Spec.ResourceClaims) == 0 || unread[kind] == "" {
			continue
		}
		if kind == "ResourceSlice" && len(v.Classless()) > 0 {
			continue // what is told by the classes alone
		}
		return kind, unread[kind]
	}
	return "", ""
}

// CauseOn tells why the scheduler finds no devices for the pod on a node; empty
// when the blocker is not about devices, or what there is could not be read.
func (v *Claims) CauseOn(n *view.Node, b whatif.Blocker) diagnosis.CauseID {
	if b.Plugin != Plugin || v == nil {
		return ""
	}
	if kind, _ := v.Unreadable(); kind != "" {
		return ""
	}
	switch {
	case len(v.Missing) > 0:
		return diagnosis.DRAClaimMissing
	case v.unknownRequest():
		return "" // the scheduler's words say more
	case len(v.Classless()) > 0:
		return diagnosis.DRAClassMissing
	case v.FaultOn(n.Name) != nil:
		return diagnosis.DRASelectorError
	case v.would[n.Name]:
		return diagnosis.DRADevicesInUse
	case len(v.Driverless()) > 0:
		return diagnosis.DRADriverMissing
	case v.hasNone(n.Name):
		// A node without devices is kept by what keeps the pod from those that
		// have them.
		return v.elsewhere()
	}
	return diagnosis.DRANoDeviceMatches
}

// unknownRequest says whether a claim asks in a way that is not known here: that of a
// later version, whose fields nobody reads here.
func (v *Claims) unknownRequest() bool {
	return slices.ContainsFunc(v.Own, func(c *resourcev1.ResourceClaim) bool {
		return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return r.Exactly == nil && len(r.FirstAvailable) == 0 })
	})
}

// elsewhere is what keeps the pod from the devices that exist.
func (v *Claims) elsewhere() diagnosis.CauseID {
	for _, a := range v.Asks {
		if len(a.matching) == 0 && a.Sub < 0 && v.Fault(a, v.Devices) == nil {
			return diagnosis.DRANoDeviceMatches
		}
	}
	if len(v.would) > 0 {
		return diagnosis.DRADevicesInUse
	}
	for _, a := range v.Asks {
		if v.Fault(a, v.Devices) != nil {
			return diagnosis.DRASelectorError
		}
	}
	return diagnosis.DRANoDeviceMatches
}

// Classless are the asks whose DeviceClass does not exist.
func (v *Claims) Classless() []*Ask {
	if v == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Asks), func(a *Ask) bool { return v.classes[a.Class] != nil })
}

// Driverless are the asks that no driver serves: none of those they insist on has
// a complete set of ResourceSlices, or nobody has.
func (v *Claims) Driverless() []*Ask {
	return slices.DeleteFunc(slices.Clone(v.Asks), func(a *Ask) bool {
		wanted := v.DriversOf(a)
		return a.Broken != nil || slices.ContainsFunc(v.Devices, func(d *Device) bool { return len(wanted) == 0 || slices.Contains(wanted, d.ID.Driver) })
	})
}

// DriversOf are the drivers an ask insists on; none: any will do.
func (v *Claims) DriversOf(a *Ask) []string {
	var out []string
	if class := v.classes[a.Class]; class != nil {
		out = drivers(class.Spec.Selectors)
	}
	return append(out, drivers(a.selectors)...)
}

// Lacked are the drivers that are asked for, where a node has no device of any class that is.
func (v *Claims) Lacked(node string) []string {
	if v == nil || !v.hasNone(node) {
		return nil
	}
	var out []string
	for _, a := range v.Asks {
		out = append(out, v.DriversOf(a)...)
	}
	return out
}

// hasNone says that a node has no device of any class that is asked for.
func (v *Claims) hasNone(node string) bool {
	for _, a := range v.Asks {
		for _, d := range v.ByNode[node] {
			if a.Readings[d].class {
				return false
			}
		}
	}
	return true
}

// FaultOn finds a selector that cannot be evaluated on a device of the node, or
// anywhere.
func (v *Claims) FaultOn(node string) *fault {
	for _, a := range v.Asks {
		if f := v.Fault(a, v.ByNode[node]); f != nil {
			return f
		}
	}
	return nil
}

// Fault is what selectors of the request fail on: on every device, else on the first of
// these on which one does; nil when none fails.
func (v *Claims) Fault(a *Ask, devices []*Device) *fault {
	if a.Broken != nil {
		return a.Broken
	}
	for _, d := range devices {
		if f := a.Readings[d].fault; f != nil {
			return f
		}
	}
	return nil
}

// FaultOnAny is the first fault of any request on any device; nil when there is none.
func (v *Claims) FaultOnAny() *fault {
	for _, a := range v.Asks {
		if f := v.Fault(a, v.Devices); f != nil {
			return f
		}
	}
	return nil
}
