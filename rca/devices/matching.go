package devices

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Misses says what no device has that an ask wants or, where some device does, none of
// the node has; empty when one of the node does.
func (v *Claims) Misses(a *Ask, node string) (string, []diagnosis.Evidence) {
	asked := diagnosis.Fact(a.Ref, "request "+a.Name+" asks "+a.CountText()+" of DeviceClass "+a.Class, a.Claims()...)
	switch {
	case len(a.matching) > 0 && int64(len(a.matching)) < a.count:
		says := fmt.Sprintf("%s, %d are asked", counted(len(a.matching)), a.count)
		return says, []diagnosis.Evidence{asked, diagnosis.Fact("DeviceClass/"+a.Class, says, append(there(a.matching), a.Claims()...)...)}
	}
	devices, near := v.Devices, v.NearOn(a, node)
	if len(a.matching) > 0 {
		if devices = v.ByNode[node]; len(devices) == 0 || len(a.MatchingOn(v, node)) > 0 {
			return "", nil
		}
	}
	for _, d := range devices {
		if taint := d.taintOf(a.tolerations); a.Readings[d].Fits && taint != "" {
			if rule := v.ruleOf(d, taint); rule != nil {
				return "every device that matches is tainted " + taint + " by DeviceTaintRule " + rule.Name, []diagnosis.Evidence{asked, diagnosis.Fact("DeviceTaintRule/"+rule.Name, "taints "+d.ID.Name+" of "+d.ID.Driver+" "+taint, taints("spec.taint", taint)...)}
			}
			return "every device that matches is tainted " + taint + sickText(d, taint), []diagnosis.Evidence{asked, diagnosis.Fact(d.Ref(), "device "+d.ID.Name+" has taint "+taint, taints("spec.devices[name="+d.ID.Name+"].taints", taint)...)}
		}
	}
	if near == nil {
		return "no device exists", []diagnosis.Evidence{asked}
	}
	evidence := []diagnosis.Evidence{asked}
	for _, f := range a.Readings[near].Failed {
		where, of := "request "+a.Name, a.Ref
		if f.Class {
			where, of = "DeviceClass "+a.Class, "DeviceClass/"+a.Class
		}
		text := strings.Join(strings.Fields(f.Text), " ")
		evidence = append(evidence, diagnosis.Fact(a.Ref, where+": "+text+" is false", diagnosis.That("spec", "", diagnosis.Contains, text).Of(of)))
	}
	return a.fails(near), append(evidence, a.nearFact(near))
}

// Claims are what is asked: of how many devices by which class.
func (a *Ask) Claims() []diagnosis.Claim {
	if a.Claim == nil {
		return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, a.Name, diagnosis.Is, strconv.FormatInt(a.count, 10)).Of(a.Ref)}
	}
	return []diagnosis.Claim{diagnosis.That("spec", "", diagnosis.Is, a.Class).Of(a.Ref), diagnosis.That("asked", a.Name, diagnosis.Is, strconv.FormatInt(a.count, 10)).Of(a.Ref)}
}

// there claims of devices, one by one, that their slices list them.
func there(devices []*Device) []diagnosis.Claim {
	out := make([]diagnosis.Claim, 0, min(len(devices), maxOffered))
	for _, d := range devices[:min(len(devices), maxOffered)] {
		out = append(out, diagnosis.That("spec.devices[name="+d.ID.Name+"]", "", diagnosis.Exists, "").Of(d.Ref()))
	}
	return out
}

// MatchingClaims claims of the node's devices that match that they are there, and how many are asked.
func (a *Ask) MatchingClaims(v *Claims, node string) []diagnosis.Claim {
	var all []*Device
	for _, d := range v.ByNode[node] {
		if a.Readings[d].Fits && d.taintOf(a.tolerations) == "" {
			all = append(all, d)
		}
	}
	return append(there(all), a.Claims()...)
}

// taints claim the parts of a taint as people write it: key=value:Effect.
func taints(path, taint string) []diagnosis.Claim {
	key, effect, _ := strings.Cut(taint, ":")
	key, value, _ := strings.Cut(key, "=")
	var out []diagnosis.Claim
	for _, part := range []string{key, value, effect} {
		if part != "" {
			out = append(out, diagnosis.That(path, "", diagnosis.Contains, part))
		}
	}
	return out
}

// MatchingOn names the node's devices that match the request and have no taint that it
// does not tolerate, held or not.
func (a *Ask) MatchingOn(v *Claims, node string) []string {
	var out []string
	for _, d := range v.ByNode[node] {
		if a.Readings[d].Fits && d.taintOf(a.tolerations) == "" {
			out = append(out, d.ID.Name)
		}
	}
	return out
}

func counted(match int) string {
	if match == 1 {
		return "1 device matches"
	}
	return fmt.Sprintf("%d devices match", match)
}

// CountText is how many devices the request wants.
func (a *Ask) CountText() string {
	if a.count == 0 {
		return "all"
	}
	return fmt.Sprint(a.count)
}
