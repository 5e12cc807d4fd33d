package nodeprobe

import (
	"reflect"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const boardName = "NVIDIA A100-SXM4-40GB"

// device is one as the DRA driver publishes it; attributes as "name=value".
func device(name string, attributes ...string) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	version := "580.126.9"
	d.Attributes["driverVersion"] = resourcev1.DeviceAttribute{VersionValue: &version}
	for _, a := range append(attributes, "productName="+boardName) {
		key, value, _ := strings.Cut(a, "=")
		d.Attributes[resourcev1.QualifiedName(key)] = resourcev1.DeviceAttribute{StringValue: &value}
	}
	return d
}

func pool(generation, count int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	node := "gpu-1"
	return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: DRADriver, NodeName: &node, Devices: devices,
		Pool: resourcev1.ResourcePool{Name: "gpu-1", Generation: generation, ResourceSliceCount: count}}}
}

// claim holds a device for a pod, or (empty) for nobody who is named.
func claim(device, pod string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "c-" + device}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Driver: DRADriver, Pool: "gpu-1", Device: device}}}}
	if pod != "" {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod}}
	}
	return c
}

func TestFromSlices(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	whole := device("gpu-0", "type=gpu", "uuid=GPU-a")
	whole.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}}
	on := &MIGMode{Current: true, Pending: true}
	tainted := func(effect resourcev1.DeviceTaintEffect) resourcev1.Device {
		d := *whole.DeepCopy()
		d.Taints = []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/unmonitored", Effect: effect}}
		return d
	}
	cases := map[string]struct {
		slices []*resourcev1.ResourceSlice
		claims []*resourcev1.ResourceClaim
		want   []GPU
		err    string
	}{
		"static MIG, both forms of names": {
			slices: []*resourcev1.ResourceSlice{pool(2, 2, device("gpu-1-mig-3g20gb-9-4", "type=mig", "uuid=MIG-b", "parentUUID=GPU-b", "profile=3g.20gb")),
				pool(2, 2, device("gpu-1-mig-19-0-1", "type=mig", "gpu.nvidia.com/uuid=MIG-a", "parentUUID=GPU-b"))},
			claims: []*resourcev1.ResourceClaim{claim("gpu-1-mig-19-0-1", "p")},
			want: []GPU{{Index: 1, UUID: "GPU-b", Product: boardName, Healthy: true, MIG: on, Instances: []Instance{
				{Profile: "1g.5gb", Start: 0, Size: 1, UUIDs: []string{"MIG-a"}, Holder: &Holder{Namespace: "ml", Pod: "p"}},
				{Profile: "3g.20gb", Start: 4, Size: 4, UUIDs: []string{"MIG-b"}}}}},
		},
		"whole GPU, allocated and reserved for nobody": {
			slices: []*resourcev1.ResourceSlice{pool(1, 1, whole)},
			claims: []*resourcev1.ResourceClaim{claim("gpu-0", "")},
			want:   []GPU{{Index: 0, UUID: "GPU-a", Product: boardName, MemoryMiB: 40960, Healthy: true, MIG: &MIGMode{}, Holders: []Holder{{Unknown: true}}}},
		},
		"dynamic MIG: what could be made does not exist": {
			slices: []*resourcev1.ResourceSlice{pool(1, 1, whole, device("gpu-0-mig-1g5gb-19-0", "type=mig", "profile=1g.5gb"), device("gpu-0-mig-2g10gb-14-2", "type=mig", "profile=2g.10gb"))},
			claims: []*resourcev1.ResourceClaim{claim("gpu-0-mig-2g10gb-14-2", "p")},
			want: []GPU{{Index: 0, UUID: "GPU-a", Product: boardName, MemoryMiB: 40960, Healthy: true, MIG: on, Instances: []Instance{
				{Profile: "2g.10gb", Start: 2, Size: 2, Holder: &Holder{Namespace: "ml", Pod: "p"}}}}},
		},
		"a GPU that its driver calls broken": {
			slices: []*resourcev1.ResourceSlice{pool(1, 1, tainted(resourcev1.DeviceTaintEffectNoSchedule))},
			want:   []GPU{{Index: 0, UUID: "GPU-a", Product: boardName, MemoryMiB: 40960, MIG: &MIGMode{}}},
		},
		"one that its driver does not watch": {
			slices: []*resourcev1.ResourceSlice{pool(1, 1, tainted(resourcev1.DeviceTaintEffectNone))},
			want:   []GPU{{Index: 0, UUID: "GPU-a", Product: boardName, MemoryMiB: 40960, Healthy: true, MIG: &MIGMode{}}},
		},
		"an older generation is forgotten": {
			slices: []*resourcev1.ResourceSlice{pool(1, 1, device("gpu-7", "type=gpu", "uuid=GPU-old")), pool(2, 1, whole)},
			want:   []GPU{{Index: 0, UUID: "GPU-a", Product: boardName, MemoryMiB: 40960, Healthy: true, MIG: &MIGMode{}}},
		},
		"a pool in parts":        {slices: []*resourcev1.ResourceSlice{pool(2, 2, whole)}, err: "pool gpu-1: 1 of 2 ResourceSlices are there"},
		"a name nobody can read": {slices: []*resourcev1.ResourceSlice{pool(1, 1, device("accelerator-0"))}, err: "accelerator-0"},
		"an unknown profile":     {slices: []*resourcev1.ResourceSlice{pool(1, 1, device("gpu-0-mig-9g99gb-77-0", "uuid=MIG-x", "profile=9g.99gb"))}, err: `the size of "9g.99gb"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			geo, err := FromSlices("gpu-1", at, c.slices, c.claims)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(geo.Report.GPUs, c.want) || geo.Report.Source != SourceDRA || geo.Report.DriverVersion != "580.126.9" || !geo.Report.ObservedAt.Time.Equal(at) {
				t.Errorf("got  %+v\nwant %+v", geo.Report, c.want)
			}
			if problems := Check(geo.Report, at); len(problems) > 0 {
				t.Errorf("problems %v", problems)
			}
		})
	}
	if geo, err := FromSlices("gpu-2", at, cases["an older generation is forgotten"].slices, nil); geo != nil || err != nil {
		t.Errorf("another node's slices made %+v, %v", geo, err)
	}
}
