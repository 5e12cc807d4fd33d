//go:build cgo

package nvml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/unpend/unpend/nodeprobe"
)

// maxProfiles ends the enumeration should a driver never say INVALID_ARGUMENT;
// there are 18 today.
const maxProfiles = 256

// kind is a profile that the GPU offers, with what it takes to list its instances.
type kind struct {
	info nvml.GpuInstanceProfileInfo
	name string
}

// offerKey is all that an answer about profiles depends on: older drivers tell
// none while MIG is off.
type offerKey struct {
	uuid, product string
	memoryMiB     int64
	mig           bool
}

// offered is what a GPU offers.
type offered struct {
	kinds    []kind
	profiles []nodeprobe.Profile
}

// profiles lists what the GPU offers. A driver that stays open always says the
// same, and nearly all of the time of a look went into it (10.4 ms, 0.16 without;
// an H200 with driver 580.159.04), so it is asked once.
func (r *Reader) profiles(d nvml.Device, out *nodeprobe.Seen) ([]kind, nvml.Return) {
	key := offerKey{out.UUID, out.Product, out.MemoryMiB, out.MIG.Current}
	if o, known := r.offers[key]; known {
		out.Profiles = o.profiles
		return o.kinds, nvml.SUCCESS
	}
	kinds, ret := r.askProfiles(d, out)
	if ret == nvml.SUCCESS && out.Profiles != nil {
		r.offers[key] = offered{kinds, out.Profiles}
	}
	return kinds, ret
}

// askProfiles asks by NVML enum until there are no more, so that profiles of
// tomorrow are seen. All of them go into out, or none: a table with holes would
// be taken for the whole.
func (r *Reader) askProfiles(d nvml.Device, out *nodeprobe.Seen) ([]kind, nvml.Return) {
	var kinds []kind
	var reported []nodeprobe.Profile
	complete := true
	for enum := range maxProfiles {
		info, ret := d.GetGpuInstanceProfileInfo(enum)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			break
		}
		if ret == nvml.ERROR_NOT_SUPPORTED {
			continue
		}
		if ret != nvml.SUCCESS {
			out.Doubts = append(out.Doubts, "does not tell its profiles: "+text(ret))
			return nil, ret
		}
		places, ret := d.GetGpuInstancePossiblePlacements(&info)
		if gone(ret) {
			return nil, ret
		}
		k := kind{info: info, name: r.nameOf(d, out.GPU, enum, info)}
		p, err := profileOf(k, places, ret)
		if err != nil {
			complete = false
			out.Doubts = append(out.Doubts, err.Error())
		}
		kinds = append(kinds, k)
		reported = append(reported, correct(out.Product, p))
	}
	if complete {
		out.Profiles = reported
	}
	return kinds, nvml.SUCCESS
}

// profileOf makes a profile of what the driver says. Its starts come only from
// the placements.
func profileOf(k kind, places []nvml.GpuInstancePlacement, ret nvml.Return) (nodeprobe.Profile, error) {
	p := nodeprobe.Profile{Name: k.name, ID: int(k.info.Id), ComputeSlices: int(k.info.SliceCount), MemoryMiB: int64(k.info.MemorySizeMB), Max: int(k.info.InstanceCount)}
	if ret != nvml.SUCCESS {
		return p, fmt.Errorf("does not tell where %s may start: %s", k.name, text(ret))
	}
	if len(places) == 0 {
		return p, fmt.Errorf("names no start for %s", k.name)
	}
	p.MemorySlices = int(places[0].Size)
	for _, at := range places {
		if at.Size != places[0].Size {
			return p, fmt.Errorf("names two sizes for %s: %d and %d memory slices", k.name, places[0].Size, at.Size)
		}
		p.Starts = append(p.Starts, int(at.Start))
	}
	slices.Sort(p.Starts)
	return p, nil
}

// correct mends the one figure a driver is known to get wrong: the maximum on an
// A30, which mig-parted does not believe either. Starts and size stay as reported.
func correct(product string, p nodeprobe.Profile) nodeprobe.Profile {
	m, _ := nodeprobe.ModelOf(product)
	if m.ID != "A30-24GB" {
		return p
	}
	for _, known := range m.Profiles {
		if known.ID == p.ID && known.MemorySlices == p.MemorySlices && slices.Equal(known.Starts, p.Starts) {
			p.Max = known.Max
		}
	}
	return p
}

// nameOf is what the driver calls a profile, or else the table of boards, or
// else what NVIDIA's own library would make of its figures.
func (r *Reader) nameOf(d nvml.Device, g nodeprobe.GPU, enum int, info nvml.GpuInstanceProfileInfo) string {
	ask := r.opts.ProfileName
	if ask == nil {
		ask = r.profileName
	}
	if name, ret := ask(d, enum); ret == nvml.SUCCESS {
		if name = strings.TrimPrefix(name, "MIG "); name != "" {
			return name
		}
	}
	m, _ := nodeprobe.ModelOf(g.Product)
	for _, p := range m.Profiles {
		if p.ID == int(info.Id) {
			return p.Name
		}
	}
	if g.MemoryMiB == 0 { // a name is a size, and it is not known
		return fmt.Sprintf("%dg (id %d)", info.SliceCount, info.Id)
	}
	return computedName(enum, info, g.MemoryMiB)
}

// profileName asks for version 3 of the figures (R535 and later), then 2 (R510).
func (r *Reader) profileName(d nvml.Device, enum int) (string, nvml.Return) {
	if !r.has("nvmlDeviceGetGpuInstanceProfileInfoV") {
		return "", nvml.ERROR_FUNCTION_NOT_FOUND
	}
	v3, ret := d.GetGpuInstanceProfileInfoV(enum).V3()
	if ret == nvml.SUCCESS {
		return chars(v3.Name[:]), ret
	}
	v2, ret := d.GetGpuInstanceProfileInfoV(enum).V2()
	return chars(v2.Name[:]), ret
}

func chars(raw []int8) string {
	var b strings.Builder
	for _, c := range raw {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// computedName follows go-nvlib, pkg/nvlib/device/mig_profile.go: compute slices
// and the share of the memory in eighths, of the whole GiB of the board.
func computedName(enum int, info nvml.GpuInstanceProfileInfo, totalMiB int64) string {
	eighths := (int64(info.MemorySizeMB)*8 + totalMiB - 1) / totalMiB
	gib := (totalMiB + 1023) / 1024
	name := fmt.Sprintf("%dg.%dgb", info.SliceCount, (eighths*gib+4)/8)
	switch enum {
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1, nvml.GPU_INSTANCE_PROFILE_2_SLICE_REV1:
		name += "+me"
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_GFX, nvml.GPU_INSTANCE_PROFILE_2_SLICE_GFX, nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX, nvml.GPU_INSTANCE_PROFILE_4_SLICE_GFX:
		name += "+gfx"
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_NO_ME, nvml.GPU_INSTANCE_PROFILE_2_SLICE_NO_ME:
		name += "-me"
	case nvml.GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME, nvml.GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME:
		name += "+me.all"
	}
	return name
}

func byStart(a, b nodeprobe.Instance) int { return cmp.Compare(a.Start, b.Start) }
