//go:build cgo

package nvml

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/nodeprobe"
)

// unnamed is a driver that does not tell the names of profiles, as before R510.
func unnamed(nvml.Device, int) (string, nvml.Return) { return "", nvml.ERROR_NOT_SUPPORTED }

func read(t *testing.T, d *driver) nodeprobe.Reading {
	t.Helper()
	got, err := New(Options{Library: d.library(), ProfileName: unnamed}).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if diff := gocmp.Diff(want, got, gocmp.Transformer("says", says)); diff != "" {
		t.Fatalf("want -, got +:\n%s", diff)
	}
}

// profilesOf is what a report of the board must list: in the driver's order.
func profilesOf(m model) []nodeprobe.Profile {
	slices.SortFunc(m.Offers, func(a, b offer) int { return cmp.Compare(a.Enum, b.Enum) })
	var out []nodeprobe.Profile
	for _, o := range m.Offers {
		p := nodeprobe.Profile{Name: o.Name, ID: int(*o.ID), ComputeSlices: int(o.Compute), MemorySlices: int(o.Places.Size), MemoryMiB: int64(o.Memory.MiB), Max: int(o.Max)}
		for _, s := range o.Places.Starts {
			p.Starts = append(p.Starts, int(s))
		}
		out = append(out, p)
	}
	return out
}

// TestEveryModel reads each board of the table, whole and partitioned with its
// last profile at its last start, by the names the driver gives and without.
func TestEveryModel(t *testing.T) {
	for _, m := range models(t) {
		for _, named := range []bool{true, false} {
			if !named && len(m.Names) == 0 {
				continue // nothing to look the names up by
			}
			product := "NVIDIA " + m.ID
			if len(m.Names) > 0 {
				product = m.Names[0]
			}
			last := m.Offers[0]
			start := last.Places.Starts[len(last.Places.Starts)-1]
			parted := &card{index: 0, product: product, uuid: "GPU-a", memory: 2048, mig: true, current: true, pending: true, offers: m.Offers,
				instances: []instance{{id: 9, profile: last.Name, start: start, devices: map[int]string{3: "MIG-a"}}}}
			whole := &card{index: 1, product: product, uuid: "GPU-b", memory: 2048, mig: true, offers: m.Offers}
			d := &driver{cards: []*card{parted, whole}}
			ask := unnamed
			if named {
				ask = func(_ nvml.Device, enum int) (string, nvml.Return) {
					i := slices.IndexFunc(m.Offers, func(o offer) bool { return o.Enum == enum })
					return "MIG " + m.Offers[i].Name, nvml.SUCCESS
				}
			}
			got, err := New(Options{Library: d.library(), ProfileName: ask}).Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			profiles := profilesOf(m)
			same(t, got, nodeprobe.Reading{DriverVersion: "580.126.09", GPUs: []nodeprobe.Seen{
				{Minor: 10, GPU: nodeprobe.GPU{Index: 0, UUID: "GPU-a", Product: product, MemoryMiB: 2048, Healthy: true, MIG: &nodeprobe.MIGMode{Current: true, Pending: true}, Profiles: profiles,
					Instances: []nodeprobe.Instance{{Profile: last.Name, ID: 9, Start: int(start), Size: int(last.Places.Size), UUIDs: []string{"MIG-a"}}}}},
				{Minor: 11, GPU: nodeprobe.GPU{Index: 1, UUID: "GPU-b", Product: product, MemoryMiB: 2048, Healthy: true, MIG: &nodeprobe.MIGMode{}, Profiles: profiles}},
			}})
		}
	}
}

// TestNames: without a name from the driver or the table, it is made of the
// figures as NVIDIA's library does.
func TestNames(t *testing.T) {
	for _, id := range []string{"A100-40GB", "A100-80GB", "A30-24GB"} {
		m := modelOf(t, id)
		c := a100(t, 0)
		c.product, c.offers = "NVIDIA tomorrow", m.Offers
		c.memory = map[string]uint64{"A100-40GB": 40960, "A100-80GB": 81920, "A30-24GB": 24576}[id]
		same(t, read(t, &driver{cards: []*card{c}}).GPUs[0].Profiles, profilesOf(m))
	}
	c := a100(t, 0)
	c.product, c.memory = "NVIDIA tomorrow", 0
	if got := read(t, &driver{cards: []*card{c}}).GPUs[0].Profiles[0].Name; got != "1g (id 19)" {
		t.Errorf("without the memory the name is %q", got)
	}
}

// TestA30Counts: the driver's maximum is wrong there, and its buffer with it.
func TestA30Counts(t *testing.T) {
	m := modelOf(t, "A30-24GB")
	want := profilesOf(m)
	for i := range m.Offers {
		m.Offers[i].Max = 1
	}
	c := &card{product: "NVIDIA A30", uuid: "GPU-0", memory: 24576, mig: true, current: true, pending: true, offers: m.Offers}
	for i := range uint32(4) {
		c.instances = append(c.instances, instance{id: i + 3, profile: "1g.6gb", start: 3 - i})
	}
	got := read(t, &driver{cards: []*card{c}}).GPUs[0]
	same(t, got.Profiles, want)
	if len(got.Instances) != 4 || got.Instances[0].ID != 6 {
		t.Errorf("instances %+v", got.Instances)
	}
}

// TestLayout: places come from the driver and not from ids; device indices have
// holes; two compute instances in one GPU instance are one instance.
func TestLayout(t *testing.T) {
	d := &driver{cards: []*card{a100(t, 0,
		instance{id: 1, profile: "3g.20gb", start: 4, devices: map[int]string{17: "MIG-z", 0: "MIG-y"}},
		instance{id: 7, profile: "1g.5gb", start: 3},
		instance{id: 13, profile: "2g.10gb", start: 0, devices: map[int]string{5: "MIG-x"}},
	)}}
	got := read(t, d).GPUs[0]
	same(t, got.Instances, []nodeprobe.Instance{
		{Profile: "2g.10gb", ID: 13, Start: 0, Size: 2, UUIDs: []string{"MIG-x"}},
		{Profile: "1g.5gb", ID: 7, Start: 3, Size: 1},
		{Profile: "3g.20gb", ID: 1, Start: 4, Size: 4, UUIDs: []string{"MIG-y", "MIG-z"}},
	})
}

// TestChangesWhileReading: what comes and goes between two calls.
func TestChangesWhileReading(t *testing.T) {
	one := instance{id: 1, profile: "1g.5gb", start: 0, devices: map[int]string{0: "MIG-1"}}
	two := instance{id: 2, profile: "2g.10gb", start: 2, devices: map[int]string{1: "MIG-2"}}
	seen := map[uint32]nodeprobe.Instance{
		1: {Profile: "1g.5gb", ID: 1, Start: 0, Size: 1, UUIDs: []string{"MIG-1"}},
		2: {Profile: "2g.10gb", ID: 2, Start: 2, Size: 2, UUIDs: []string{"MIG-2"}},
	}
	for name, tc := range map[string]struct {
		had, has []instance
		at       string
	}{
		"one vanishes after it was listed":        {[]instance{one, two}, []instance{two}, "Info"},
		"one vanishes before its device is asked": {[]instance{one, two}, []instance{two}, "MaxMig"},
		"one appears before devices are asked":    {[]instance{one}, []instance{one, two}, "MaxMig"},
		"all vanish":                              {[]instance{one, two}, nil, "MigHandle"},
		"another takes the id":                    {[]instance{one}, []instance{{id: 1, profile: "2g.10gb", start: 2, devices: map[int]string{0: "MIG-2"}}}, "MigInstance"},
	} {
		t.Run(name, func(t *testing.T) {
			c := a100(t, 0, tc.had...)
			c.before = func(f string) {
				if f == tc.at {
					c.instances = tc.has
				}
			}
			var want []nodeprobe.Instance
			for _, in := range tc.has {
				w := seen[in.id]
				if in.profile == "2g.10gb" {
					w = seen[2]
					w.ID = int(in.id)
				}
				want = append(want, w)
			}
			got := read(t, &driver{cards: []*card{c}}).GPUs[0]
			same(t, got.Instances, want)
			same(t, got.Unlisted, error(nil))
		})
	}
	t.Run("never the same twice", func(t *testing.T) {
		c := a100(t, 0)
		n := uint32(0)
		c.before = func(f string) {
			if f == "MaxMig" {
				n++
				c.instances = []instance{{id: n, profile: "1g.5gb", start: n}}
			}
		}
		got := read(t, &driver{cards: []*card{c}}).GPUs[0]
		if got.Unlisted == nil || got.Instances != nil {
			t.Errorf("%+v, %v", got.Instances, got.Unlisted)
		}
	})
}

// TestDenied: what may not be asked is unknown and never empty.
func TestDenied(t *testing.T) {
	held := instance{id: 1, profile: "1g.5gb", start: 6, devices: map[int]string{0: "MIG-1"}}
	unknown := []nodeprobe.Instance{{Profile: "1g.5gb", ID: 1, Start: 6, Size: 1, Holder: &nodeprobe.Holder{Unknown: true}}}
	for function, tc := range map[string]struct {
		unlisted  string
		doubt     string
		instances []nodeprobe.Instance
		profiles  bool
	}{
		"Handle":      {unlisted: "cannot be opened: no permission"},
		"UUID":        {unlisted: "does not tell its UUID: no permission"},
		"Mode":        {unlisted: "does not tell its MIG mode: no permission"},
		"Profile":     {unlisted: "does not tell its instances: they are asked for by profile, and it tells none", doubt: "does not tell its profiles: no permission"},
		"Placements":  {doubt: "does not tell where 1g.5gb may start: no permission", instances: []nodeprobe.Instance{{Profile: "1g.5gb", ID: 1, Start: 6, Size: 1, UUIDs: []string{"MIG-1"}}}},
		"List":        {unlisted: "does not tell its instances: no permission", profiles: true},
		"Info":        {unlisted: "does not tell its instances: no permission", profiles: true},
		"MaxMig":      {doubt: "does not tell its MIG devices, so nobody knows who holds them: no permission", instances: unknown, profiles: true},
		"MigHandle":   {doubt: "does not tell its MIG devices, so nobody knows who holds them: no permission", instances: unknown, profiles: true},
		"MigInstance": {doubt: "does not tell its MIG devices, so nobody knows who holds them: no permission", instances: unknown, profiles: true},
		"MigUUID":     {doubt: "does not tell its MIG devices, so nobody knows who holds them: no permission", instances: unknown, profiles: true},
	} {
		t.Run(function, func(t *testing.T) {
			c := a100(t, 0, held)
			c.deny = map[string]nvml.Return{function: nvml.ERROR_NO_PERMISSION}
			all := read(t, &driver{cards: []*card{c, a100(t, 1, held)}}).GPUs
			got := all[0]
			if says := says(got.Unlisted); says != tc.unlisted {
				t.Errorf("unlisted: %q, want %q", says, tc.unlisted)
			}
			if says := slices.Concat(got.Doubts, []string{""})[0]; says != tc.doubt {
				t.Errorf("doubts %q, want %q", got.Doubts, tc.doubt)
			}
			same(t, got.Instances, tc.instances)
			if (len(got.Profiles) > 0) != tc.profiles {
				t.Errorf("profiles %v", got.Profiles)
			}
			if all[1].Unlisted != nil || len(all[1].Instances) != 1 || all[1].Instances[0].Holder != nil {
				t.Errorf("the other GPU is taken along: %+v", all[1])
			}
		})
	}
}

func says(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWholeGPUs: a board without MIG, one with MIG off, one too old for MIG.
func TestWholeGPUs(t *testing.T) {
	plain := &card{index: 0, product: "NVIDIA L4", uuid: "GPU-0", memory: 23034}
	off := a100(t, 1, instance{id: 1, profile: "1g.5gb"}) // which must not be asked for
	off.current, off.pending = false, false
	off.before = func(f string) {
		if f == "List" || f == "MaxMig" {
			t.Errorf("%s is called while MIG is off", f)
		}
	}
	same(t, read(t, &driver{cards: []*card{plain, off}}).GPUs, []nodeprobe.Seen{
		{Minor: 10, GPU: nodeprobe.GPU{Index: 0, UUID: "GPU-0", Product: "NVIDIA L4", MemoryMiB: 23034, Healthy: true}},
		{Minor: 11, GPU: nodeprobe.GPU{Index: 1, UUID: "GPU-1", Product: off.product, MemoryMiB: 40960, Healthy: true, MIG: &nodeprobe.MIGMode{}, Profiles: profilesOf(modelOf(t, "A100-40GB"))}},
	})
	old := a100(t, 0)
	old.before = func(f string) {
		if f == "Mode" {
			t.Error("a function is called that the library lacks: that ends the process")
		}
	}
	if got := read(t, &driver{cards: []*card{old}, lacks: []string{"nvmlDeviceGetMigMode"}}).GPUs[0]; got.MIG != nil || !got.Healthy {
		t.Errorf("%+v", got)
	}
	if got := read(t, &driver{}); len(got.GPUs) != 0 || got.DriverVersion != "580.126.09" {
		t.Errorf("without GPUs: %+v", got)
	}
}

// TestFailedInit: nothing is called after it but Init, later and later; it
// recovers by itself. The fake panics at anything else.
func TestFailedInit(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "libnvidia-ml.so.1 is not here",
		nvml.ERROR_DRIVER_NOT_LOADED:       "kernel module is not loaded",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "different versions",
		nvml.ERROR_NO_PERMISSION:           "/dev/nvidiactl",
		nvml.ERROR_UNKNOWN:                 "NVML error 999",
	} {
		d, now := &driver{init: ret, cards: []*card{a100(t, 0)}}, time.Unix(0, 0)
		r := New(Options{Library: d.library(), ProfileName: unnamed, Now: func() time.Time { return now }})
		for range 3 {
			if _, err := r.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, want one line with %q", err, want)
			}
		}
		r.Close()
		same(t, d.calls, []string{"Init"})
		now = now.Add(10 * time.Second)
		if _, err := r.Read(t.Context()); err == nil {
			t.Fatal("a failed Init, and no error")
		}
		same(t, d.calls, []string{"Init", "Init"})
		d.init = nvml.SUCCESS
		now = now.Add(2 * time.Minute)
		if got, err := r.Read(t.Context()); err != nil || len(got.GPUs) != 1 {
			t.Fatalf("not recovered: %v", err)
		}
	}
}

// TestDriverGoes: it is closed, and opened again.
func TestDriverGoes(t *testing.T) {
	d := &driver{cards: []*card{a100(t, 0)}}
	r := New(Options{Library: d.library(), ProfileName: unnamed})
	if _, err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.count = nvml.ERROR_UNINITIALIZED
	d.calls = nil
	if _, err := r.Read(t.Context()); err == nil || err.Error() != "the driver closed itself" {
		t.Fatal(err)
	}
	d.count = nvml.SUCCESS
	if _, err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Close()
	same(t, d.calls, []string{"SystemGetDriverVersion", "DeviceGetCount", "Free", "Shutdown",
		"Init", "SystemGetDriverVersion", "DeviceGetCount", "EventSetCreate", "DeviceGetHandleByIndex", "Free", "Shutdown"})
}

// TestPendingMode: while a GPU waits for a reset, no handle is kept.
func TestPendingMode(t *testing.T) {
	c := a100(t, 0)
	c.current = false
	d := &driver{cards: []*card{c}}
	r := New(Options{Library: d.library(), ProfileName: unnamed})
	got, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, got.GPUs[0].MIG, &nodeprobe.MIGMode{Current: false, Pending: true})
	if last := d.calls[len(d.calls)-1]; last != "Shutdown" {
		t.Errorf("the driver is still open; last call: %s", last)
	}
	c.current = true
	if got, err = r.Read(t.Context()); err != nil || !got.GPUs[0].MIG.Current {
		t.Fatal(err)
	}
	if last := d.calls[len(d.calls)-1]; last == "Shutdown" {
		t.Error("the driver is let go without need")
	}
}

// TestProfilesAreAskedOnce: while the driver stays open, and only what it told in
// full; in another MIG mode it may tell another.
func TestProfilesAreAskedOnce(t *testing.T) {
	c := a100(t, 0, instance{id: 1, profile: "1g.5gb", start: 0})
	asked := 0
	c.deny = map[string]nvml.Return{}
	c.before = func(name string) {
		if name == "Profile" || name == "Placements" {
			asked++
		}
	}
	d := &driver{cards: []*card{c}}
	r := New(Options{Library: d.library(), ProfileName: unnamed})
	look := func(when string, asks bool) nodeprobe.Seen {
		t.Helper()
		asked = 0
		got, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if asks != (asked > 0) {
			t.Errorf("%s: %d questions about profiles", when, asked)
		}
		return got.GPUs[0]
	}
	c.deny["Placements"] = nvml.ERROR_NO_PERMISSION
	if got := look("first", true); got.Profiles != nil {
		t.Errorf("half a table: %+v", got.Profiles)
	}
	delete(c.deny, "Placements")
	first := look("allowed since", true)
	c.instances = append(c.instances, instance{id: 2, profile: "1g.5gb", start: 1})
	again := look("again", false)
	same(t, again.Profiles, first.Profiles)
	if len(first.Profiles) == 0 || len(first.Instances) != 1 || len(again.Instances) != 2 {
		t.Errorf("instances are to be read each time: %+v, then %+v", first.Instances, again.Instances)
	}
	c.current, c.pending, c.instances = false, false, nil
	look("MIG off", true)
	c.current, c.pending = true, true
	look("MIG on again", false)
	r.Close()
	look("opened again", true)
}

// TestHidden: what the kernel has and the library does not list is told, but for
// what is excluded on purpose.
func TestHidden(t *testing.T) {
	gpu := func(is string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("Model: \t\t NVIDIA A100-SXM4-40GB\nDevice Minor: \t 0\nGPU Excluded:\t " + is + "\n")}
	}
	for name, tc := range map[string]struct {
		kernel fstest.MapFS
		want   int
	}{
		"the kernel tells nothing": {fstest.MapFS{}, 0},
		"all are listed":           {fstest.MapFS{"0000:07:00.0/information": gpu("No")}, 0},
		"one is not":               {fstest.MapFS{"0000:07:00.0/information": gpu("No"), "0000:0f:00.0/information": gpu("No")}, 1},
		"one is excluded":          {fstest.MapFS{"0000:07:00.0/information": gpu("No"), "0000:0f:00.0/information": gpu("Yes")}, 0},
	} {
		d := &driver{cards: []*card{a100(t, 0)}}
		got, err := New(Options{Library: d.library(), ProfileName: unnamed, Kernel: tc.kernel}).Read(t.Context())
		if err != nil || got.Hidden != tc.want {
			t.Errorf("%s: %d hidden, want %d (%v)", name, got.Hidden, tc.want, err)
		}
	}
}

// TestHealth: ECC, a lost GPU, and Xids, but not those that programs cause.
func TestHealth(t *testing.T) {
	fine, ecc, lostLater, noECC := a100(t, 0), a100(t, 1), a100(t, 2), a100(t, 3)
	ecc.ecc = 2
	noECC.deny = map[string]nvml.Return{"ECC": nvml.ERROR_NOT_SUPPORTED}
	d := &driver{cards: []*card{fine, ecc, lostLater, noECC}, events: make(chan nvml.EventData, 2)}
	r := New(Options{Library: d.library(), ProfileName: unnamed})
	health := func() (out []bool) {
		t.Helper()
		got, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range got.GPUs {
			out = append(out, g.Healthy)
		}
		return out
	}
	same(t, health(), []bool{true, false, true, true})
	lostLater.deny = map[string]nvml.Return{"ECC": nvml.ERROR_GPU_IS_LOST}
	same(t, health(), []bool{true, false, false, true})
	lostLater.deny = map[string]nvml.Return{"Handle": nvml.ERROR_GPU_IS_LOST}
	same(t, health(), []bool{true, false, false, true})
	if r.note(nvml.EventData{Device: fine.device(), EventType: nvml.EventTypeXidCriticalError, EventData: 31}) {
		t.Error("a page fault of a program is news")
	}
	same(t, health(), []bool{true, false, false, true})
	if !r.note(nvml.EventData{Device: fine.device(), EventType: nvml.EventTypeXidCriticalError, EventData: 79}) {
		t.Error("Xid 79 is no news")
	}
	same(t, health(), []bool{false, false, false, true})
	nameless := a100(t, 9)
	nameless.deny = map[string]nvml.Return{"UUID": nvml.ERROR_UNKNOWN}
	r.note(nvml.EventData{Device: nameless.device(), EventType: nvml.EventTypeXidCriticalError, EventData: 119})
	same(t, health(), []bool{false, false, false, false})
}

// TestWait: an event ends it at once, everything else when the time is up.
func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		event    *nvml.EventData // 1 s after the start
		noEvents bool
		want     time.Duration
	}{
		"layout changes":     {event: &nvml.EventData{EventType: nvml.EventMigConfigChange}, want: time.Second},
		"Xid":                {event: &nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: 79}, want: time.Second},
		"Xid of a program":   {event: &nvml.EventData{EventType: nvml.EventTypeXidCriticalError, EventData: 13}, want: 5 * time.Second},
		"nothing happens":    {want: 5 * time.Second},
		"no events":          {noEvents: true, want: 5 * time.Second},
		"the set is useless": {event: &nvml.EventData{}, want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := a100(t, 0)
				d := &driver{cards: []*card{c}, noEvents: tc.noEvents, events: make(chan nvml.EventData)}
				r := New(Options{Library: d.library(), ProfileName: unnamed})
				if _, err := r.Read(t.Context()); err != nil {
					t.Fatal(err)
				}
				if e := tc.event; e != nil {
					if e.EventType != 0 {
						e.Device = c.device()
					}
					timer := time.AfterFunc(time.Second, func() { d.events <- *e })
					defer timer.Stop()
				}
				start := time.Now()
				r.Wait(t.Context(), 5*time.Second)
				if took := time.Since(start); took != tc.want {
					t.Errorf("waited %s, want %s", took, tc.want)
				}
				r.Close()
			})
		})
	}
}
