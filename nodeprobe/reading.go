package nodeprobe

import "cmp"

// Reading is what the driver of a node says at one moment.
type Reading struct {
	DriverVersion string
	GPUs          []Seen
	// Hidden is how many GPUs the kernel has that the driver's library does not list.
	Hidden int
}

// Seen is one GPU as the driver shows it, before anybody knows who holds it. A
// GPU that the driver counts and does not open has an Index, Unlisted and
// nothing else. An instance whose MIG devices could not be told has a Holder
// that is unknown.
type Seen struct {
	GPU
	// Minor is the n of /dev/nvidia<n>, -1 when it is not known. The DRA driver
	// names devices by it; it need not be the Index.
	Minor int
	// Unlisted says why the instances are not known. Instances is then empty,
	// which must not be read as "none".
	Unlisted error
	// Doubts are what else the driver would not say, one clause each.
	Doubts []string
}

// Allocation is one device that the kubelet has given to a container.
type Allocation struct {
	Holder Holder
	// Name is a device id of the device plugin, or of the DRA driver.
	Name string
	DRA  bool
}

func (a Allocation) device() (Device, error) {
	if a.DRA {
		return ParseDRADevice(a.Name)
	}
	return ParseDeviceID(a.Name)
}

// Compare orders by holder, then by name.
func (a Allocation) Compare(b Allocation) int {
	return cmp.Or(compareHolders(a.Holder, b.Holder), cmp.Compare(a.Name, b.Name))
}
