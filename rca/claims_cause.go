package rca

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/whatif"
)

// devicesUnreadable names a kind without which the devices of this pod cannot be
// judged, and why it was not read.
func (v *claimView) unreadable() (kind, why string) {
	unread := v.asker.world.state.Unread
	for _, kind := range []string{"ResourceClaim", "DeviceClass", "ResourceSlice"} {
		if kind == "ResourceClaim" && len(v.pod.Spec.ResourceClaims) == 0 || unread[kind] == "" {
			continue
		}
		if kind == "ResourceSlice" && len(v.classless()) > 0 {
			continue // what is told by the classes alone
		}
		return kind, unread[kind]
	}
	return "", ""
}

// deviceCause tells why the scheduler finds no devices for the pod on a node; empty
// when the blocker is not about devices, or what there is could not be read.
func (v *claimView) causeOn(n *nodeView, b whatif.Blocker) CauseID {
	if b.Plugin != draPlugin || v == nil {
		return ""
	}
	if kind, _ := v.unreadable(); kind != "" {
		return ""
	}
	switch {
	case len(v.missing) > 0:
		return DRAClaimMissing
	case v.unknownRequest():
		return "" // the scheduler's words say more
	case len(v.classless()) > 0:
		return DRAClassMissing
	case v.faultOn(n.Name) != nil:
		return DRASelectorError
	case v.would[n.Name]:
		return DRADevicesInUse
	case len(v.driverless()) > 0:
		return DRADriverMissing
	case v.hasNone(n.Name):
		// A node without devices is kept by what keeps the pod from those that
		// have them.
		return v.elsewhere()
	}
	return DRANoDeviceMatches
}

// unknownRequest says whether a claim asks in a way that is not known here: a later
// version's, of which the fields are not read.
func (v *claimView) unknownRequest() bool {
	return slices.ContainsFunc(v.own, func(c *resourcev1.ResourceClaim) bool {
		return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return r.Exactly == nil && len(r.FirstAvailable) == 0 })
	})
}

// elsewhere is what keeps the pod from the devices that exist.
func (v *claimView) elsewhere() CauseID {
	for _, a := range v.asks {
		if len(a.matching) == 0 && a.sub < 0 && v.fault(a, v.devices) == nil {
			return DRANoDeviceMatches
		}
	}
	if len(v.would) > 0 {
		return DRADevicesInUse
	}
	for _, a := range v.asks {
		if v.fault(a, v.devices) != nil {
			return DRASelectorError
		}
	}
	return DRANoDeviceMatches
}

// classless are the asks whose DeviceClass does not exist.
func (v *claimView) classless() []*deviceAsk {
	if v == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.asks), func(a *deviceAsk) bool { return v.classes[a.class] != nil })
}

// driverless are the asks that no driver serves: none of those they insist on has
// a complete set of ResourceSlices, or nobody has.
func (v *claimView) driverless() []*deviceAsk {
	return slices.DeleteFunc(slices.Clone(v.asks), func(a *deviceAsk) bool {
		wanted := v.driversOf(a)
		return a.broken != nil || slices.ContainsFunc(v.devices, func(d *device) bool { return len(wanted) == 0 || slices.Contains(wanted, d.id.driver) })
	})
}

// driversOf are the drivers an ask insists on; none: any will do.
func (v *claimView) driversOf(a *deviceAsk) []string {
	var out []string
	if class := v.classes[a.class]; class != nil {
		out = drivers(class.Spec.Selectors)
	}
	return append(out, drivers(a.selectors)...)
}

// hasNone says that a node has no device of any class that is asked for.
func (v *claimView) hasNone(node string) bool {
	for _, a := range v.asks {
		for _, d := range v.byNode[node] {
			if a.readings[d].class {
				return false
			}
		}
	}
	return true
}

// faultOn finds a selector that cannot be evaluated on a device of the node, or
// anywhere.
func (v *claimView) faultOn(node string) *fault {
	for _, a := range v.asks {
		if f := v.fault(a, v.byNode[node]); f != nil {
			return f
		}
	}
	return nil
}

func (v *claimView) fault(a *deviceAsk, devices []*device) *fault {
	if a.broken != nil {
		return a.broken
	}
	for _, d := range devices {
		if f := a.readings[d].fault; f != nil {
			return f
		}
	}
	return nil
}
