//go:build cgo

package nvml

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// driver is a driver with GPUs, behind go-nvml's own interface. Whatever the
// reader calls that is not set here panics. The vendor's mocks are not used: the
// placements of H100, H200 and B200 there are wrong.
type driver struct {
	init, count nvml.Return
	cards       []*card
	lacks       []string // functions of the library
	noEvents    bool
	events      chan nvml.EventData
	calls       []string
}

// card is a GPU. deny has the return of a function that fails; before is called
// before each function, with its name.
type card struct {
	index            int
	product, uuid    string
	memory           uint64 // MiB
	mig              bool   // the board has it
	current, pending bool
	offers           []offer
	instances        []instance
	handles          int // MIG device indices, most of them empty; default 20
	ecc              uint64
	deny             map[string]nvml.Return
	before           func(string)
}

// offer is a profile as the file of facts has it.
type offer struct {
	Name    string  `json:"name"`
	ID      *uint32 `json:"gi_profile_id_cgi"`
	Enum    int     `json:"nvml_enum_value"`
	Compute uint32  `json:"compute_slices"`
	Memory  struct {
		MiB uint64 `json:"value"`
	} `json:"memory_mib"`
	Max    uint32 `json:"max_instances"`
	Places struct {
		Starts []uint32 `json:"starts"`
		Size   uint32   `json:"size"`
	} `json:"placements"`
}

type instance struct {
	id      uint32
	profile string
	start   uint32
	devices map[int]string // MIG device index → UUID
}

type model struct {
	ID     string   `json:"id"`
	Names  []string `json:"nvml_names"`
	Offers []offer  `json:"profiles"`
}

func models(t testing.TB) []model {
	t.Helper()
	data, err := os.ReadFile("../mig_profiles.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		GPUs []model `json:"gpus"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(f.GPUs, func(m model) bool { return len(m.Offers) == 0 })
}

func modelOf(t testing.TB, id string) model {
	t.Helper()
	all := models(t)
	i := slices.IndexFunc(all, func(m model) bool { return m.ID == id })
	if i < 0 {
		t.Fatalf("no model %s", id)
	}
	return all[i]
}

// a100 is a partitioned A100-40GB.
func a100(t testing.TB, index int, instances ...instance) *card {
	return &card{index: index, product: "NVIDIA A100-SXM4-40GB", uuid: fmt.Sprintf("GPU-%d", index), memory: 40960,
		mig: true, current: true, pending: true, offers: modelOf(t, "A100-40GB").Offers, instances: instances}
}

func (d *driver) called(name string) { d.calls = append(d.calls, name) }

// library is the driver as go-nvml has it. After a failed Init, or a Shutdown,
// anything but Init panics.
func (d *driver) library() nvml.Interface {
	open := false
	need := func(name string) {
		d.called(name)
		if !open {
			panic(name + " while the driver is not open: a real one ends the process")
		}
	}
	return &mock.Interface{
		InitFunc: func() nvml.Return { d.called("Init"); open = d.init == nvml.SUCCESS; return d.init },
		ShutdownFunc: func() nvml.Return {
			need("Shutdown")
			open = false
			return nvml.SUCCESS
		},
		SystemGetDriverVersionFunc: func() (string, nvml.Return) { need("SystemGetDriverVersion"); return "580.126.09", nvml.SUCCESS },
		DeviceGetCountFunc:         func() (int, nvml.Return) { need("DeviceGetCount"); return len(d.cards), d.count },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			need("DeviceGetHandleByIndex")
			c := d.cards[i]
			return c.device(), c.may("Handle")
		},
		EventSetCreateFunc: func() (nvml.EventSet, nvml.Return) {
			need("EventSetCreate")
			if d.noEvents {
				return nil, nvml.ERROR_NOT_SUPPORTED
			}
			return d.eventSet(need), nvml.SUCCESS
		},
		ExtensionsFunc: func() nvml.ExtendedInterface {
			return &mock.ExtendedInterface{LookupSymbolFunc: func(name string) error {
				if slices.Contains(d.lacks, name) {
					return fmt.Errorf("undefined symbol: %s", name)
				}
				return nil
			}}
		},
	}
}

func (d *driver) eventSet(need func(string)) nvml.EventSet {
	return &mock.EventSet{
		WaitFunc: func(ms uint32) (nvml.EventData, nvml.Return) {
			need("Wait")
			select {
			case e := <-d.events:
				if e.Device == nil {
					return e, nvml.ERROR_GPU_IS_LOST
				}
				return e, nvml.SUCCESS
			case <-time.After(time.Duration(ms) * time.Millisecond):
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
		},
		FreeFunc: func() nvml.Return { need("Free"); return nvml.SUCCESS },
	}
}

// may says how a function ends.
func (c *card) may(name string) nvml.Return {
	if c.before != nil {
		c.before(name)
	}
	return c.deny[name]
}

func (c *card) device() nvml.Device {
	return &mock.Device{
		GetUUIDFunc:           func() (string, nvml.Return) { return c.uuid, c.may("UUID") },
		GetNameFunc:           func() (string, nvml.Return) { return c.product, c.may("Name") },
		GetMinorNumberFunc:    func() (int, nvml.Return) { return 10 + c.index, c.may("Minor") },
		GetMemoryInfoFunc:     func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: c.memory << 20}, c.may("Memory") },
		GetMigModeFunc:        c.mode,
		GetTotalEccErrorsFunc: c.eccErrors,
		GetSupportedEventTypesFunc: func() (uint64, nvml.Return) {
			return nvml.EventTypeXidCriticalError | nvml.EventMigConfigChange | nvml.EventTypeClock, c.may("Events")
		},
		RegisterEventsFunc: func(types uint64, _ nvml.EventSet) nvml.Return {
			if types != nvml.EventTypeXidCriticalError|nvml.EventMigConfigChange {
				panic(fmt.Sprintf("events %#x are not all supported", types))
			}
			return c.may("Register")
		},
		GetGpuInstanceProfileInfoFunc:        c.profileInfo,
		GetGpuInstancePossiblePlacementsFunc: c.placements,
		GetGpuInstancesFunc:                  c.list,
		GetMaxMigDeviceCountFunc:             func() (int, nvml.Return) { return max(c.handles, 20), c.may("MaxMig") },
		GetMigDeviceHandleByIndexFunc:        c.handle,
	}
}

func (c *card) mode() (int, int, nvml.Return) {
	if ret := c.may("Mode"); ret != nvml.SUCCESS {
		return 0, 0, ret
	}
	if !c.mig {
		return 0, 0, nvml.ERROR_NOT_SUPPORTED
	}
	n := map[bool]int{true: nvml.DEVICE_MIG_ENABLE, false: nvml.DEVICE_MIG_DISABLE}
	return n[c.current], n[c.pending], nvml.SUCCESS
}

func (c *card) eccErrors(kind nvml.MemoryErrorType, since nvml.EccCounterType) (uint64, nvml.Return) {
	if kind != nvml.MEMORY_ERROR_TYPE_UNCORRECTED || since != nvml.VOLATILE_ECC {
		panic("not the errors that matter")
	}
	return c.ecc, c.may("ECC")
}

func (c *card) profileInfo(enum int) (nvml.GpuInstanceProfileInfo, nvml.Return) {
	if ret := c.may("Profile"); ret != nvml.SUCCESS {
		return nvml.GpuInstanceProfileInfo{}, ret
	}
	if enum >= 30 { // of a driver that knows more of them than we do
		return nvml.GpuInstanceProfileInfo{}, nvml.ERROR_INVALID_ARGUMENT
	}
	for _, o := range c.offers {
		if o.Enum == enum {
			return nvml.GpuInstanceProfileInfo{Id: *o.ID, SliceCount: o.Compute, InstanceCount: o.Max, MemorySizeMB: o.Memory.MiB}, nvml.SUCCESS
		}
	}
	return nvml.GpuInstanceProfileInfo{}, nvml.ERROR_NOT_SUPPORTED
}

func (c *card) placements(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstancePlacement, nvml.Return) {
	var out []nvml.GpuInstancePlacement
	for _, o := range c.offers {
		if *o.ID == info.Id {
			for _, start := range slices.Backward(o.Places.Starts) { // no order is promised
				out = append(out, nvml.GpuInstancePlacement{Start: start, Size: o.Places.Size})
			}
		}
	}
	return out, c.may("Placements")
}

func (c *card) list(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstance, nvml.Return) {
	if ret := c.may("List"); ret != nvml.SUCCESS {
		return nil, ret
	}
	if !c.current {
		return nil, nvml.ERROR_NOT_SUPPORTED
	}
	var out []nvml.GpuInstance
	for _, in := range c.instances {
		o := c.offers[slices.IndexFunc(c.offers, func(o offer) bool { return o.Name == in.profile })]
		if *o.ID != info.Id {
			continue
		}
		out = append(out, &mock.GpuInstance{GetInfoFunc: func() (nvml.GpuInstanceInfo, nvml.Return) {
			if ret := c.may("Info"); ret != nvml.SUCCESS {
				return nvml.GpuInstanceInfo{}, ret
			}
			if !slices.ContainsFunc(c.instances, func(now instance) bool { return now.id == in.id }) {
				return nvml.GpuInstanceInfo{}, nvml.ERROR_NOT_FOUND
			}
			return nvml.GpuInstanceInfo{Id: in.id, ProfileId: info.Id, Placement: nvml.GpuInstancePlacement{Start: in.start, Size: o.Places.Size}}, nvml.SUCCESS
		}})
	}
	if int(info.InstanceCount) < len(out) {
		return nil, nvml.ERROR_INSUFFICIENT_SIZE
	}
	return out, nvml.SUCCESS
}

func (c *card) handle(index int) (nvml.Device, nvml.Return) {
	if ret := c.may("MigHandle"); ret != nvml.SUCCESS {
		return nil, ret
	}
	for _, in := range c.instances {
		if uuid, ok := in.devices[index]; ok {
			return &mock.Device{
				GetGpuInstanceIdFunc: func() (int, nvml.Return) { return int(in.id), c.may("MigInstance") },
				GetUUIDFunc:          func() (string, nvml.Return) { return uuid, c.may("MigUUID") },
			}, nvml.SUCCESS
		}
	}
	return nil, nvml.ERROR_NOT_FOUND
}
