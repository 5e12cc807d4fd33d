package rca

import (
	"fmt"
	"strings"
)

// draNoDeviceMatches: there are devices, and even if nobody held one none would do.
// Which clause of which selector fails is asked of the scheduler's own CEL
// environment, device by device.
var draNoDeviceMatches = Rule{ID: DRANoDeviceMatches, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if c.claims.causeOn(n, b.Blocker) != DRANoDeviceMatches {
		return nil
	}
	f := &finding{certainty: Proven}
	for _, a := range c.claims.asks {
		if says, evidence := c.claims.misses(a, n.Name); says != "" {
			if f.says == "" {
				f.says = says
			}
			f.evidence = append(f.evidence, evidence...)
		}
	}
	here := len(c.claims.byNode[n.Name])
	if f.says == "" {
		f.says = "no node has devices that match together"
		for _, claim := range c.claims.own {
			for _, con := range claim.Spec.Devices.Constraints {
				if con.MatchAttribute != nil {
					f.evidence = append(f.evidence, Evidence{"ResourceClaim/" + claim.Namespace + "/" + claim.Name, "constraint matchAttribute " + string(*con.MatchAttribute)})
				}
			}
		}
		for _, a := range c.claims.asks {
			f.evidence = append(f.evidence, Evidence{n.ref(), fmt.Sprintf("%d devices match request %s, %s asked", a.matchingOn(c.claims, n.Name), a.name, a.countText())})
		}
	}
	f.evidence = append(f.evidence, Evidence{n.ref(), fmt.Sprintf("%d devices, none serves the claims", here)})
	return f
}}

// misses says what no device has that an ask wants or, where some device does, none of
// the node has; empty when one of the node does.
func (v *claimView) misses(a *deviceAsk, node string) (string, []Evidence) {
	asked := Evidence{a.ref, "request " + a.name + " asks " + a.countText() + " of DeviceClass " + a.class}
	switch {
	case len(a.matching) > 0 && int64(len(a.matching)) < a.count:
		says := fmt.Sprintf("%d devices match, %d are asked", len(a.matching), a.count)
		return says, []Evidence{asked, {"DeviceClass/" + a.class, says}}
	}
	devices, near := v.devices, v.nearOn(a, node)
	if len(a.matching) > 0 {
		if devices = v.byNode[node]; len(devices) == 0 || a.matchingOn(v, node) > 0 {
			return "", nil
		}
	}
	for _, d := range devices {
		if taint := d.taintOf(a.tolerations); a.readings[d].fits && taint != "" {
			return "every device that matches is tainted " + taint, []Evidence{asked, {d.ref(), "device " + d.id.name + " has taint " + taint}}
		}
	}
	if near == nil {
		return "no device exists", []Evidence{asked}
	}
	evidence := []Evidence{asked}
	for _, f := range a.readings[near].failed {
		where := "request " + a.name
		if f.class {
			where = "DeviceClass " + a.class
		}
		evidence = append(evidence, Evidence{a.ref, where + ": " + strings.Join(strings.Fields(f.text), " ") + " is false"})
	}
	return a.fails(near), append(evidence, a.nearFact(near))
}

func (a *deviceAsk) matchingOn(v *claimView, node string) int {
	count := 0
	for _, d := range v.byNode[node] {
		if a.readings[d].fits && d.taintOf(a.tolerations) == "" {
			count++
		}
	}
	return count
}

func (a *deviceAsk) countText() string {
	if a.count == 0 {
		return "all"
	}
	return fmt.Sprint(a.count)
}
