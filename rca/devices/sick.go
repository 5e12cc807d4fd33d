package devices

import (
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/cluster"
)

// sicknesses are the taints by which NVIDIA's driver tells of the health of a device, and what each says
// (kubernetes-sigs/dra-driver-nvidia-gpu, its documentation of device health).
var sicknesses = map[string]string{
	"gpu.nvidia.com/xid":         "its driver has met an XID error of the GPU",
	"gpu.nvidia.com/gpu-lost":    "its driver has lost the GPU",
	"gpu.nvidia.com/unmonitored": "its driver cannot watch the GPU's health",
}

// Sick is a device that the ask would take, and that its own driver tells is not well.
type Sick struct {
	*Device
	Node        string
	Says        string // what the driver tells
	Taints      string
	Unmonitored bool // it tells nothing of the GPU, but that it cannot
}

// sickText is what the taint of a device says of its health; empty where it is another's taint.
func sickText(d *Device, taint string) string {
	if says := sickness(d, taint); says != "" {
		return ": " + says
	}
	return ""
}

func sickness(d *Device, taint string) string {
	for _, t := range d.Taints {
		if cluster.TaintText(t) == taint && strings.HasPrefix(t.Key, d.ID.Driver+"/") {
			return sicknesses[t.Key]
		}
	}
	return ""
}

// SickOn are the devices of the node that the ask would take but for what their driver tells of their health; of a node
// without devices, those of others.
func (v *Claims) SickOn(a *Ask, node string) []Sick {
	var out []Sick
	for d, taint := range v.keptOff(a, node) {
		if says := sickness(d, taint); says != "" && v.ruleOf(d, taint) == nil {
			out = append(out, Sick{d, v.nodeOf(d), says, taint, strings.HasPrefix(taint, d.ID.Driver+"/unmonitored")})
		}
	}
	return out
}

// nodeOf is the first node that can use a device.
func (v *Claims) nodeOf(d *Device) string {
	for _, n := range v.asker.Cluster.SortedNodes() {
		if slices.Contains(v.ByNode[n.Name], d) {
			return n.Name
		}
	}
	return ""
}
