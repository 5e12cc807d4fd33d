package nodeprobe

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Device is what the kubelet's name of a device says about which one it is:
// either a UUID, or, for DRA, a GPU's minor number and a place on it.
type Device struct {
	// UUID of a GPU ("GPU-…") or a MIG device ("MIG-…").
	UUID string
	// Parent and InstanceID are what a MIG UUID of drivers before R470 tells,
	// "MIG-GPU-<uuid>/<GPU instance>/<compute instance>".
	Parent     string
	InstanceID int

	// Minor is the n of /dev/nvidia<n>; it counts only without a UUID.
	Minor int
	// Place is nil for a whole GPU.
	Place *Place
}

// Place is a GPU instance as the DRA driver names it.
type Place struct {
	ProfileID int // what nvidia-smi mig -lgip prints
	Start     int // memory slice
	Size      int // memory slices; 0: the name does not say
}

// The forms of names. A UUID's own form is NVIDIA's business: only what would
// let one name stand for another is refused.
var (
	uuidForm   = regexp.MustCompile(`^(?:GPU|MIG)-[0-9A-Za-z][0-9A-Za-z-]*$`)
	legacyForm = regexp.MustCompile(`^MIG-(GPU-[0-9A-Za-z][0-9A-Za-z-]*)/([0-9]{1,4})/[0-9]{1,4}$`)
	// Of k8s-dra-driver-gpu, ToCanonicalName: gpu-0, gpu-0-mig-1g5gb-19-2 (profile,
	// its id, start), and of v25.8 gpu-0-mig-19-2-1 (profile id, start, size).
	draForm    = regexp.MustCompile(`^gpu-([0-9]{1,4})(?:-mig-(.+))?$`)
	draNew     = regexp.MustCompile(`^[0-9]+g[0-9]+gb(?:-[a-z]+)?-([0-9]{1,4})-([0-9]{1,2})$`)
	draOfV25_8 = regexp.MustCompile(`^([0-9]{1,4})-([0-9]{1,2})-([0-9]{1,2})$`)
)

// ParseDeviceID reads a device id of NVIDIA's device plugin: "GPU-…", "MIG-…",
// either with "::n" behind it for the n-th share of one device. The error says
// that it is none of these.
func ParseDeviceID(id string) (Device, error) {
	uuid, replica, shared := strings.Cut(id, "::")
	if shared {
		if n, err := strconv.Atoi(replica); err != nil || n < 0 || replica[0] == '+' {
			return Device{}, fmt.Errorf("device id %q: %q is no number of a share", id, replica)
		}
	}
	if m := legacyForm.FindStringSubmatch(uuid); m != nil {
		return Device{UUID: uuid, Parent: m[1], InstanceID: number(m[2])}, nil
	}
	if !uuidForm.MatchString(uuid) {
		return Device{}, fmt.Errorf("device id %q is no UUID of a GPU or MIG device", id)
	}
	return Device{UUID: uuid}, nil
}

// ParseDRADevice reads a device name of NVIDIA's DRA driver (gpu.nvidia.com), in
// its present form and that of v25.8. The error says that it is neither.
func ParseDRADevice(name string) (Device, error) {
	m := draForm.FindStringSubmatch(name)
	if m == nil {
		return Device{}, fmt.Errorf("DRA device %q is neither a GPU nor a MIG device", name)
	}
	d := Device{Minor: number(m[1])}
	if m[2] == "" {
		return d, nil
	}
	if p := draNew.FindStringSubmatch(m[2]); p != nil {
		d.Place = &Place{ProfileID: number(p[1]), Start: number(p[2])}
		return d, nil
	}
	p := draOfV25_8.FindStringSubmatch(m[2])
	if p == nil || number(p[3]) == 0 {
		return Device{}, fmt.Errorf("DRA device %q names no place that could be read", name)
	}
	d.Place = &Place{ProfileID: number(p[1]), Start: number(p[2]), Size: number(p[3])}
	return d, nil
}

// number reads digits that an expression has matched.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(fmt.Sprintf("%q passed for a number", digits)) // the expressions above allow none such
	}
	return n
}
