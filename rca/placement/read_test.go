package placement_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

const a100Name = "NVIDIA A100-SXM4-40GB"

func TestRead(t *testing.T) {
	h := nodeprobe.Holder{Namespace: "a", Pod: "b", Container: "c"}
	got, err := placement.Read("n1", nodeprobe.GPU{Index: 3, UUID: "GPU-9", Product: a100Name, Instances: []nodeprobe.Instance{
		{Profile: "1g.5gb.me", Start: 6, Size: 1, Holder: &nodeprobe.Holder{Unknown: true}},
		{Profile: "3g.20gb", Start: 0, Size: 4, Holder: &h},
		{Profile: "1g.5gb", Start: 5, Size: 1, Holder: &nodeprobe.Holder{}},
		{Profile: "1g.5gb", Start: 4, Size: 1},
	}})
	want := []placement.Slot{
		{Profile: "3g.20gb", Start: 0, Size: 4, Held: true, Holder: h},
		{Profile: "1g.5gb", Start: 4, Size: 1},
		{Profile: "1g.5gb", Start: 5, Size: 1, Held: true, Unknown: true},
		{Profile: "1g.5gb+me", Start: 6, Size: 1, Held: true, Unknown: true, Holder: nodeprobe.Holder{Unknown: true}},
	}
	if err != nil || !slices.Equal(got.Slots, want) || got.Node != "n1" || got.Index != 3 || got.UUID != "GPU-9" || got.Product != a100Name || got.Grid.Slices() != 8 {
		t.Errorf("%+v %v, want slots %+v", got, err, want)
	}
}

// refused reads a GPU that must be refused with that error.
func refused(t *testing.T, name, want string, gpu nodeprobe.GPU) {
	t.Helper()
	gpu.Index, gpu.UUID = 3, "GPU-9"
	got, err := placement.Read("n1", gpu)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "GPU 3 (GPU-9) of n1: ") || got.Grid != nil || got.Slots != nil {
		t.Errorf("%s: %+v, error %v, want none and %q", name, got, err, want)
	}
}

func TestReadRefusesInstances(t *testing.T) {
	in := func(p string, start, size int) nodeprobe.Instance {
		return nodeprobe.Instance{Profile: p, Start: start, Size: size}
	}
	for name, c := range map[string]struct {
		want      string
		instances []nodeprobe.Instance
	}{
		"overlap":         {"instance 1g.5gb@3 overlaps another", []nodeprobe.Instance{in("3g.20gb", 0, 4), in("1g.5gb", 3, 1)}},
		"duplicate":       {"instance 1g.5gb@3 overlaps another", []nodeprobe.Instance{in("1g.5gb", 3, 1), in("1g.5gb", 3, 1)}},
		"start never":     {"instance 2g.10gb starts at memory slice 1, the profile starts at [0 2 4]", []nodeprobe.Instance{in("2g.10gb", 1, 2)}},
		"slot 7":          {"instance 1g.5gb starts at memory slice 7", []nodeprobe.Instance{in("1g.5gb", 7, 1)}},
		"start negative":  {"instance 1g.5gb starts at memory slice -1", []nodeprobe.Instance{in("1g.5gb", -1, 1)}},
		"size zero":       {"instance 1g.5gb@1 covers 0 memory slices, the profile covers 1", []nodeprobe.Instance{in("1g.5gb", 1, 0)}},
		"size by name":    {"instance 3g.20gb@4 covers 3 memory slices, the profile covers 4", []nodeprobe.Instance{in("3g.20gb", 4, 3)}},
		"unknown profile": {`"9g.1gb"`, []nodeprobe.Instance{in("9g.1gb", 1, 1)}},
		"too many":        {"2 instances of 1g.5gb+me, at most 1", []nodeprobe.Instance{in("1g.5gb+me", 1, 1), in("1g.5gb+me", 2, 1)}},
	} {
		refused(t, name, c.want, nodeprobe.GPU{Product: a100Name, Instances: c.instances})
	}
	refused(t, "unknown product", `"ACME 1"`, nodeprobe.GPU{Product: "ACME 1"})
	refused(t, "no MIG", `"Tesla T4"`, nodeprobe.GPU{Product: "Tesla T4"})
	refused(t, "compute", "instances have 5 compute slices, the board has 4", nodeprobe.GPU{Profiles: tight.Profiles,
		Instances: []nodeprobe.Instance{in("b", 0, 2), in("a", 2, 1), in("b", 3, 2)}})
}

func TestReadRefusesProfiles(t *testing.T) {
	first := nodeprobe.Profile{Name: "1g.2gb", ComputeSlices: 1, MemorySlices: 1, Max: 1, Starts: []int{0}}
	for name, c := range map[string]struct {
		want   string
		change func(*nodeprobe.Profile)
	}{
		"no starts":        {"profile 1g.1gb+me: has no start positions", func(q *nodeprobe.Profile) { q.Starts = nil }},
		"size 0":           {"profile 1g.1gb+me: covers 0 memory slices", func(q *nodeprobe.Profile) { q.MemorySlices = 0 }},
		"size negative":    {"profile 1g.1gb+me: covers -1 memory slices", func(q *nodeprobe.Profile) { q.MemorySlices = -1 }},
		"size 65":          {"profile 1g.1gb+me: covers 65 memory slices", func(q *nodeprobe.Profile) { q.MemorySlices = 65 }},
		"beyond 64":        {"profile 1g.1gb+me: start 63 is outside 0..62", func(q *nodeprobe.Profile) { q.Starts = []int{0, 63} }},
		"overflow":         {"profile 1g.1gb+me: start 9223372036854775807 is outside", func(q *nodeprobe.Profile) { q.Starts = []int{1<<63 - 1} }},
		"negative start":   {"profile 1g.1gb+me: start -2 is outside", func(q *nodeprobe.Profile) { q.Starts = []int{0, -2} }},
		"start twice":      {"profile 1g.1gb+me: start 2 is given twice", func(q *nodeprobe.Profile) { q.Starts = []int{2, 0, 2} }},
		"max 0":            {"profile 1g.1gb+me: at most 0 instances", func(q *nodeprobe.Profile) { q.Max = 0 }},
		"compute negative": {"profile 1g.1gb+me: covers -1 compute slices", func(q *nodeprobe.Profile) { q.ComputeSlices = -1 }},
		"name twice":       {"profile 1g.2gb: named twice", func(q *nodeprobe.Profile) { q.Name = "1g.2gb" }},
		"spelling twice":   {"profile 1g.1gb+me: named twice, also as 1g.1gb.me", func(*nodeprobe.Profile) {}},
		"no name":          {"profile with id 19: has no name", func(q *nodeprobe.Profile) { q.Name = "" }},
	} {
		q := nodeprobe.Profile{Name: "1g.1gb+me", ID: 19, ComputeSlices: 1, MemorySlices: 2, Max: 2, Starts: []int{0, 2}}
		c.change(&q)
		before := first
		if name == "spelling twice" {
			before.Name = "1g.1gb.me"
		}
		refused(t, name, c.want, nodeprobe.GPU{Product: a100Name, Profiles: []nodeprobe.Profile{before, q}})
	}
	if _, err := placement.NewGrid(nil); err == nil {
		t.Error("a grid of no profiles")
	}
}

// GPUs with equal profiles share one table, others do not, and no caller changes
// it.
func TestGridIsShared(t *testing.T) {
	one, two := a100(t, on("1g.5gb", 0)), a100(t)
	if one.Grid != two.Grid {
		t.Error("equal profiles, two tables")
	}
	other := one.Grid.Profiles()
	other[0].MemoryMiB++
	g, err := placement.NewGrid(other)
	if err != nil || g == one.Grid {
		t.Errorf("other profiles, same table (%v)", err)
	}
	if p, _ := g.Profile(other[0].Name); p.MemoryMiB != other[0].MemoryMiB {
		t.Errorf("profile %+v, want %+v", p, other[0])
	}
	other[0].Starts[0], g.Profiles()[0].Starts[0] = 5, 5
	if again := g.Profiles(); again[0].Starts[0] != 0 {
		t.Error("a caller changed the table")
	}
}

func FuzzRead(f *testing.F) {
	for _, gpu := range []nodeprobe.GPU{
		{Product: a100Name, Instances: []nodeprobe.Instance{on("3g.20gb", 4), idle("1g.5gb", 0)}},
		{Profiles: tight.Profiles, Instances: []nodeprobe.Instance{{Profile: "b", Start: 3, Size: 2, Holder: &nodeprobe.Holder{}}}},
		{Profiles: []nodeprobe.Profile{{Name: "x", MemorySlices: 64, Max: 1, Starts: []int{0}}, {Name: "y", MemorySlices: 1, Max: 9, Starts: []int{63, 0, 7}}}},
		{Product: "ACME"},
	} {
		data, err := json.Marshal(gpu)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var report nodeprobe.GPU
		if json.Unmarshal(data, &report) != nil {
			return
		}
		gpu, err := placement.Read("n", report)
		if err != nil {
			return
		}
		if len(gpu.Slots) != len(report.Instances) {
			t.Fatalf("%d slots of %d instances", len(gpu.Slots), len(report.Instances))
		}
		for _, p := range gpu.Grid.Profiles() {
			fit := gpu.Fit(p.Name)
			if fit.Room > 0 != (fit.Start >= 0) || fit.Start >= 0 && !slices.Contains(p.Starts, fit.Start) || fit.Free < 0 {
				t.Fatalf("%s: %+v", p.Name, fit)
			}
			e, ok := gpu.Cheapest(p.Name, 1, func(placement.Slot) (int64, bool) { return 1, true })
			if !ok || (len(e.Slots) == 0) != (fit.Room > 0) {
				t.Fatalf("%s: %+v, evicting %+v %v", p.Name, fit, e, ok)
			}
		}
	})
}
