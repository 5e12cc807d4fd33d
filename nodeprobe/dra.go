package nodeprobe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DRADriver is the name of NVIDIA's DRA driver and the domain of its attributes
// (github.com/kubernetes-sigs/dra-driver-nvidia-gpu, 0.4 and 0.5).
const DRADriver = "gpu.nvidia.com"

// FromSlices makes the report that the DRA driver's ResourceSlices of a node allow
// where no probe runs: positions from the names of devices, holders from the
// claims that devices are allocated to. A MIG device with a uuid exists; one
// without could be made, and exists while it is allocated. Instances have no id.
// nil when the driver has no slices for the node. The error says why what is
// there proves nothing: a pool that is not complete, a name that cannot be read.
func FromSlices(node string, at time.Time, all []*resourcev1.ResourceSlice, claims []*resourcev1.ResourceClaim) (*NodeGeometry, error) {
	pools, err := newestPools(node, all)
	if err != nil || len(pools) == 0 {
		return nil, err
	}
	boards := map[int]*board{}
	version := ""
	for pool, parts := range pools {
		holders := holdersIn(pool, claims)
		for _, s := range parts {
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				if attribute(d, "type") == "vfio" {
					continue // given to virtual machines, as a whole
				}
				if err := addDevice(boards, d, holders[d.Name]); err != nil {
					return nil, fmt.Errorf("pool %s: %w", pool, err)
				}
				version = cmp.Or(version, versionAttribute(d, "driverVersion"))
			}
		}
	}
	geo := &NodeGeometry{TypeMeta: metav1.TypeMeta{APIVersion: Kind.GroupVersion().String(), Kind: Kind.Kind}, ObjectMeta: metav1.ObjectMeta{Name: node},
		Report: Report{ObservedAt: metav1.NewTime(at), Source: SourceDRA, DriverVersion: version}}
	for _, b := range boards {
		geo.Report.GPUs = append(geo.Report.GPUs, b.gpu())
	}
	slices.SortFunc(geo.Report.GPUs, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	return geo, nil
}

// newestPools are the slices of the newest generation of each of the driver's
// pools on a node.
func newestPools(node string, all []*resourcev1.ResourceSlice) (map[string][]*resourcev1.ResourceSlice, error) {
	pools := map[string][]*resourcev1.ResourceSlice{}
	for _, s := range all {
		if s.Spec.Driver != DRADriver || s.Spec.NodeName == nil || *s.Spec.NodeName != node {
			continue
		}
		name := s.Spec.Pool.Name
		have := pools[name]
		if len(have) > 0 && have[0].Spec.Pool.Generation > s.Spec.Pool.Generation {
			continue
		}
		if len(have) > 0 && have[0].Spec.Pool.Generation < s.Spec.Pool.Generation {
			have = nil
		}
		pools[name] = append(have, s)
	}
	for name, parts := range pools {
		if want := parts[0].Spec.Pool.ResourceSliceCount; int64(len(parts)) != want {
			return nil, fmt.Errorf("pool %s: %d of %d ResourceSlices are there", name, len(parts), want)
		}
	}
	return pools, nil
}

// holdersIn says, by device, who holds the devices of a pool: an allocated one is
// held, even while no pod is named.
func holdersIn(pool string, claims []*resourcev1.ResourceClaim) map[string][]Holder {
	out := map[string][]Holder{}
	for _, c := range claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Driver != DRADriver || r.Pool != pool || r.AdminAccess != nil && *r.AdminAccess {
				continue
			}
			named := false
			for _, consumer := range c.Status.ReservedFor {
				if consumer.APIGroup == "" && consumer.Resource == "pods" {
					named = true
					out[r.Device] = append(out[r.Device], Holder{Namespace: c.Namespace, Pod: consumer.Name})
				}
			}
			if !named {
				out[r.Device] = append(out[r.Device], Holder{Unknown: true})
			}
		}
	}
	return out
}

// board gathers the devices of one GPU.
type board struct {
	minor         int
	uuid, product string
	memoryMiB     int64
	tainted       bool
	whole         bool // the GPU itself is a device
	holders       []Holder
	instances     []Instance
}

func addDevice(boards map[int]*board, d *resourcev1.Device, holders []Holder) error {
	parsed, err := ParseDRADevice(d.Name)
	if err != nil {
		return err
	}
	b := boards[parsed.Minor]
	if b == nil {
		b = &board{minor: parsed.Minor}
		boards[parsed.Minor] = b
	}
	b.product = cmp.Or(b.product, attribute(d, "productName"))
	// What has no effect is for people to read: the driver says so that it does not monitor.
	b.tainted = b.tainted || slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool { return t.Effect != resourcev1.DeviceTaintEffectNone })
	if parsed.Place == nil {
		b.whole, b.uuid, b.holders = true, cmp.Or(b.uuid, attribute(d, "uuid")), distinct(holders)
		if c, ok := d.Capacity["memory"]; ok {
			b.memoryMiB = c.Value.Value() >> 20
		}
		return nil
	}
	b.uuid = cmp.Or(b.uuid, attribute(d, "parentUUID"))
	uuid := attribute(d, "uuid")
	if uuid == "" && len(holders) == 0 {
		return nil // it could be made
	}
	in := Instance{Profile: attribute(d, "profile"), Start: parsed.Place.Start, Size: parsed.Place.Size}
	m, _ := ModelOf(b.product)
	for _, p := range m.Profiles {
		if p.Name == in.Profile || in.Profile == "" && p.ID == parsed.Place.ProfileID {
			in.Profile, in.Size = p.Name, p.MemorySlices
		}
	}
	if in.Size == 0 {
		return fmt.Errorf("device %s: the size of %q on %q is not known", d.Name, in.Profile, b.product)
	}
	if uuid != "" {
		in.UUIDs = []string{uuid}
	}
	if len(holders) > 0 {
		in.Holder = only(holders)
	}
	b.instances = append(b.instances, in)
	return nil
}

// gpu is the board as a report has it. A model with profiles whose devices are
// not partitioned now has MIG off.
func (b *board) gpu() GPU {
	g := GPU{Index: b.minor, UUID: b.uuid, Product: b.product, MemoryMiB: b.memoryMiB, Healthy: !b.tainted, Holders: b.holders}
	m, known := ModelOf(b.product)
	if !known || len(m.Profiles) > 0 || len(b.instances) > 0 {
		on := len(b.instances) > 0 || !b.whole
		g.MIG = &MIGMode{Current: on, Pending: on}
	}
	g.Instances = slices.SortedFunc(slices.Values(b.instances), func(x, y Instance) int { return cmp.Compare(x.Start, y.Start) })
	return g
}

// attribute reads a string; without a domain an attribute is of the driver's.
func attribute(d *resourcev1.Device, name string) string {
	for _, key := range []string{name, DRADriver + "/" + name} {
		if a, ok := d.Attributes[resourcev1.QualifiedName(key)]; ok && a.StringValue != nil {
			return *a.StringValue
		}
	}
	return ""
}

func versionAttribute(d *resourcev1.Device, name string) string {
	for _, key := range []string{name, DRADriver + "/" + name} {
		if a, ok := d.Attributes[resourcev1.QualifiedName(key)]; ok && a.VersionValue != nil {
			return *a.VersionValue
		}
	}
	return ""
}
