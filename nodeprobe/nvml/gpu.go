//go:build cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/unpend/unpend/nodeprobe"
)

const mib = 1 << 20

// gpu reads one GPU. The return is that of a call that failed because the driver
// is gone, else SUCCESS: what the GPU would not say stands in it.
func (r *Reader) gpu(index int) (nodeprobe.Seen, nvml.Return) {
	out := nodeprobe.Seen{GPU: nodeprobe.GPU{Index: index}, Minor: -1}
	d, ret := r.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		out.Unlisted = fmt.Errorf("cannot be opened: %s", text(ret))
		return out, ret
	}
	uuid, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		out.Unlisted = fmt.Errorf("does not tell its UUID: %s", text(ret))
		return out, ret
	}
	out.UUID, out.Healthy = uuid, true
	r.record(d, uuid) // before anything is read: what changes later is reported
	if name, ret := d.GetName(); ret == nvml.SUCCESS {
		out.Product = name
	} else {
		out.Doubts = append(out.Doubts, "does not tell its name: "+text(ret))
	}
	if memory, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		out.MemoryMiB = int64(memory.Total / mib)
	}
	if minor, ret := d.GetMinorNumber(); ret == nvml.SUCCESS {
		out.Minor = minor
	}
	if ret := r.partitions(d, &out); gone(ret) {
		return out, ret
	}
	return out, r.health(d, &out)
}

// partitions reads what there is of MIG.
func (r *Reader) partitions(d nvml.Device, out *nodeprobe.Seen) nvml.Return {
	if !r.has("nvmlDeviceGetMigMode", "nvmlDeviceGetGpuInstances", "nvmlGpuInstanceGetInfo", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetGpuInstanceId") {
		return nvml.SUCCESS // a driver before R450 partitions nothing
	}
	current, pending, ret := d.GetMigMode()
	if ret == nvml.ERROR_NOT_SUPPORTED {
		return nvml.SUCCESS // the board has no MIG
	}
	if ret != nvml.SUCCESS {
		out.Unlisted = fmt.Errorf("does not tell its MIG mode: %s", text(ret))
		return ret
	}
	out.MIG = &nodeprobe.MIGMode{Current: current == nvml.DEVICE_MIG_ENABLE, Pending: pending == nvml.DEVICE_MIG_ENABLE}
	kinds, ret := r.profiles(d, out)
	if gone(ret) || !out.MIG.Current {
		return ret
	}
	if lost(ret) {
		out.Healthy = false
	}
	return r.instances(d, kinds, out)
}

// health takes a GPU out that was lost, had a critical Xid, or memory errors that
// ECC could not mend since the driver was loaded.
func (r *Reader) health(d nvml.Device, out *nodeprobe.Seen) nvml.Return {
	count, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	for _, says := range []string{r.broken[out.UUID], r.broken[anyGPU]} {
		if says != "" {
			out.Healthy = false
			out.Doubts = append(out.Doubts, "is not healthy: "+says)
		}
	}
	switch {
	case ret == nvml.SUCCESS && count > 0:
		out.Healthy = false
		out.Doubts = append(out.Doubts, fmt.Sprintf("is not healthy: uncorrectable ECC errors, %d since the driver was loaded", count))
	case lost(ret):
		out.Healthy = false
		out.Doubts = append(out.Doubts, "is not healthy: "+text(ret))
	}
	return ret
}
