//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/unpend/unpend/nodeprobe"
)

// steadyTries is how often a GPU is read again because its layout changed during the
// reading.
const steadyTries = 3

// instances lists the GPU instances and the MIG devices in them. The two come
// from different calls, so the layout must be the same before and after: else a
// new instance would have no devices, and read as held by nobody.
func (r *Reader) instances(d nvml.Device, kinds []kind, out *nodeprobe.Seen) nvml.Return {
	if len(kinds) == 0 {
		out.Unlisted = errors.New("does not tell its instances: they are asked for by profile, and it tells none")
		return nvml.SUCCESS
	}
	before, ret := list(d, kinds)
	for range steadyTries {
		if ret != nvml.SUCCESS {
			out.Unlisted = fmt.Errorf("does not tell its instances: %s", text(ret))
			return ret
		}
		devices, asked := migDevices(d)
		if gone(asked) {
			return asked
		}
		var after []nodeprobe.Instance
		after, ret = list(d, kinds)
		if ret == nvml.SUCCESS && slices.EqualFunc(before, after, samePlace) {
			out.Instances = withDevices(after, devices, asked)
			if asked != nvml.SUCCESS {
				out.Doubts = append(out.Doubts, "does not tell its MIG devices, so nobody knows who holds them: "+text(asked))
			}
			return nvml.SUCCESS
		}
		before = after
	}
	if ret == nvml.SUCCESS {
		out.Unlisted = errors.New("its layout is being changed")
	}
	return ret
}

func samePlace(a, b nodeprobe.Instance) bool {
	return a.ID == b.ID && a.Profile == b.Profile && a.Start == b.Start && a.Size == b.Size
}

// list asks for the instances of each profile, lowest start first. Their places
// are what the driver says of each: neither id nor order tells one.
func list(d nvml.Device, kinds []kind) ([]nodeprobe.Instance, nvml.Return) {
	var out []nodeprobe.Instance
	for _, k := range kinds {
		// go-nvml makes the buffer this large; the driver's figure is too small on an A30.
		k.info.InstanceCount = max(k.info.InstanceCount, 16)
		found, ret := d.GetGpuInstances(&k.info)
		if ret != nvml.SUCCESS { // NOT_SUPPORTED too: MIG has just been turned off
			return nil, ret
		}
		for _, gi := range found {
			info, ret := gi.GetInfo()
			if vanished(ret) {
				continue
			}
			if ret != nvml.SUCCESS {
				return nil, ret
			}
			out = append(out, nodeprobe.Instance{Profile: k.name, ID: int(info.Id), Start: int(info.Placement.Start), Size: int(info.Placement.Size)})
		}
	}
	slices.SortFunc(out, byStart)
	return out, nvml.SUCCESS
}

// vanished says that something was destroyed since it was listed.
func vanished(ret nvml.Return) bool {
	return ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT
}

// migDevices are the UUIDs of MIG devices by GPU instance: a device is a compute
// instance, and one GPU instance may have several. Indices are sparse.
func migDevices(d nvml.Device) (map[int][]string, nvml.Return) {
	out := map[int][]string{}
	n, ret := d.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return out, ret
	}
	for i := range n {
		m, ret := d.GetMigDeviceHandleByIndex(i)
		if vanished(ret) {
			continue
		}
		if ret != nvml.SUCCESS {
			return out, ret
		}
		id, ret := m.GetGpuInstanceId()
		if vanished(ret) {
			continue
		}
		if ret != nvml.SUCCESS {
			return out, ret
		}
		uuid, ret := m.GetUUID()
		if vanished(ret) {
			continue
		}
		if ret != nvml.SUCCESS {
			return out, ret
		}
		out[id] = append(out[id], uuid)
	}
	return out, nvml.SUCCESS
}

// withDevices puts the devices into their instances. If not all could be told,
// the holders of instances are unknown too.
func withDevices(in []nodeprobe.Instance, devices map[int][]string, asked nvml.Return) []nodeprobe.Instance {
	for k := range in {
		in[k].UUIDs = slices.Sorted(slices.Values(devices[in[k].ID]))
		if asked != nvml.SUCCESS {
			in[k].Holder = &nodeprobe.Holder{Unknown: true}
		}
	}
	return in
}
