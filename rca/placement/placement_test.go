package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
)

func model(t testing.TB, id string) nodeprobe.Model {
	t.Helper()
	for _, m := range nodeprobe.Models() {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("no model %s", id)
	return nodeprobe.Model{}
}

func only(m nodeprobe.Model, keep func(nodeprobe.Profile) bool) []nodeprobe.Profile {
	return slices.DeleteFunc(slices.Clone(m.Profiles), func(p nodeprobe.Profile) bool { return !keep(p) })
}

func plainCore(p nodeprobe.Profile) bool {
	return !strings.ContainsAny(p.Name, "+-") && (p.ComputeSlices > 1 || p.MemorySlices%3 == 0 || p.MemorySlices == 1)
}

func noMedia(p nodeprobe.Profile) bool { return !strings.ContainsAny(p.Name, "+-") }

type judged struct {
	profile, start, end int
}

// brute enumerates sets of placements by trying every subset, from the reported
// profiles alone: the independent judge of the grid.
func brute(profiles []nodeprobe.Profile, compute int) [][]judged {
	var all []judged
	for i, p := range profiles {
		for _, s := range p.Starts {
			all = append(all, judged{i, s, s + p.MemorySlices})
		}
	}
	var out [][]judged
	var walk func(from int, set []judged)
	walk = func(from int, set []judged) {
		if len(set) > 0 {
			out = append(out, slices.Clone(set))
		}
	next:
		for k := from; k < len(all); k++ {
			same, used := 1, profiles[all[k].profile].ComputeSlices
			for _, o := range set {
				if all[k].start < o.end && o.start < all[k].end {
					continue next
				}
				used += profiles[o.profile].ComputeSlices
				if o.profile == all[k].profile {
					same++
				}
			}
			if same <= profiles[all[k].profile].Max && used <= compute {
				walk(k+1, append(set, all[k]))
			}
		}
	}
	walk(0, nil)
	return out
}

func multiset(profiles []nodeprobe.Profile, set []judged) string {
	l := Layout{}
	for _, j := range set {
		l[profiles[j.profile].Name]++
	}
	return l.String()
}

// The figures are those of NVIDIA's MIG user guide: 19 maximal configurations on
// A100, 5 on A30.
func TestLayoutCounts(t *testing.T) {
	cases := []struct {
		model      string
		keep       func(nodeprobe.Profile) bool
		compute    int
		sets, maxi int
		multisets  int
	}{
		{"A100-40GB", plainCore, 7, 297, 19, 37},
		{"A100-40GB", noMedia, 7, 722, 78, 77},
		{"A100-40GB", func(nodeprobe.Profile) bool { return true }, 7, 2318, 239, 127},
		{"A30-24GB", plainCore, 4, 25, 5, 9},
		{"A30-24GB", func(nodeprobe.Profile) bool { return true }, 4, 83, 21, 21},
		{"RTX-PRO-6000-Blackwell-96GB", plainCore, 4, 25, 5, 9},
	}
	for _, c := range cases {
		profiles := only(model(t, c.model), c.keep)
		sets := brute(profiles, c.compute)
		g, err := NewGrid(profiles)
		if err != nil {
			t.Fatal(err)
		}
		if len(sets) != c.sets || len(g.Layouts()) != c.multisets {
			t.Errorf("%s, %d profiles: %d sets, %d layouts, want %d and %d", c.model, len(profiles), len(sets), len(g.Layouts()), c.sets, c.multisets)
		}
		if n := maximal(sets); n != c.maxi {
			t.Errorf("%s, %d profiles: %d maximal sets, want %d", c.model, len(profiles), n, c.maxi)
		}
	}
}

func maximal(sets [][]judged) int {
	keys := map[string]bool{}
	key := func(s []judged) string { return fmt.Sprint(s) }
	for _, s := range sets {
		for drop := range s {
			smaller := slices.Delete(slices.Clone(s), drop, drop+1)
			keys[key(smaller)] = true
		}
	}
	n := 0
	for _, s := range sets {
		if !keys[key(s)] {
			n++
		}
	}
	return n
}

// Every legal state of every model, each instance held: the verdict on every
// profile equals what trying every start says.
func TestFitAgainstBruteForce(t *testing.T) {
	verdicts := 0
	for _, m := range nodeprobe.Models() {
		compute := 0
		for _, p := range m.Profiles {
			compute = max(compute, p.ComputeSlices)
		}
		g, err := NewGrid(m.Profiles)
		if err != nil {
			t.Fatalf("%s: %v", m.ID, err)
		}
		layouts := map[string]bool{}
		for _, set := range brute(m.Profiles, compute) {
			layouts[multiset(m.Profiles, set)] = true
			gpu := GPU{Grid: g}
			for _, j := range set {
				gpu.Slots = append(gpu.Slots, Slot{Profile: m.Profiles[j.profile].Name, Start: j.start, Size: j.end - j.start, Held: true})
			}
			for i, p := range m.Profiles {
				verdicts++
				want := fits(m.Profiles, compute, set, i)
				if got := gpu.Fit(p.Name).Start; (got >= 0) != (len(want) > 0) || got >= 0 && !slices.Contains(want, got) {
					t.Fatalf("%s, %s: %s at %d, want one of %v", m.ID, layoutOf(gpu), p.Name, got, want)
				}
			}
		}
		got := map[string]bool{}
		for _, l := range g.Layouts() {
			got[l.String()] = true
		}
		if !maps.Equal(got, layouts) {
			t.Fatalf("%s: %d layouts, brute force finds %d", m.ID, len(got), len(layouts))
		}
	}
	t.Logf("%d verdicts, 0 false", verdicts)
}

func layoutOf(g GPU) string { return fmt.Sprint(g.Slots) }

// fits lists the starts at which one more instance of profile i is legal.
func fits(profiles []nodeprobe.Profile, compute int, set []judged, i int) []int {
	used, same := profiles[i].ComputeSlices, 1
	for _, o := range set {
		used += profiles[o.profile].ComputeSlices
		if o.profile == i {
			same++
		}
	}
	if used > compute || same > profiles[i].Max {
		return nil
	}
	var out []int
	for _, s := range profiles[i].Starts {
		free := !slices.ContainsFunc(set, func(o judged) bool { return s < o.end && o.start < s+profiles[i].MemorySlices })
		if free {
			out = append(out, s)
		}
	}
	return out
}

func a100(t testing.TB, placed ...string) GPU {
	t.Helper()
	g := nodeprobe.GPU{UUID: "GPU-1", Product: "NVIDIA A100-SXM4-40GB"}
	for i, text := range placed {
		profile, start, _ := strings.Cut(text, "@")
		in := nodeprobe.Instance{Profile: profile, ID: i, Holder: &nodeprobe.Holder{Namespace: "a", Pod: fmt.Sprint("p", i), Container: "c"}}
		if before, ok := strings.CutSuffix(start, " idle"); ok {
			in.Holder, start = nil, before
		}
		fmt.Sscan(start, &in.Start)
		p, _ := model(t, "A100-40GB").Profile(profile)
		in.Size = p.MemorySlices
		g.Instances = append(g.Instances, in)
	}
	gpu, err := Read("n", g)
	if err != nil {
		t.Fatal(err)
	}
	return gpu
}

// 1g held at 0, 1 and 5: five slices are unheld, a 3g fits nowhere, and the
// silicon would need the holder at 5 to leave.
func TestFragmentedByOneHolder(t *testing.T) {
	gpu := a100(t, "1g.5gb@0", "1g.5gb@1", "1g.5gb@5")
	if got, want := gpu.Fit("3g.20gb"), (Fit{Supported: true, Free: 5, Start: -1}); got != want {
		t.Errorf("fit %+v, want %+v", got, want)
	}
	e, ok := gpu.Cheapest("3g.20gb", 1, func(Slot) (int64, bool) { return 1, true })
	if !ok || len(e.Slots) != 1 || e.Slots[0].Start != 5 || !slices.Equal(e.Starts, []int{4}) {
		t.Errorf("cheapest %+v %v, want the holder at 5, start 4", e, ok)
	}
	best := gpu.Relayouts("3g.20gb", 1)[0]
	if best["1g.5gb"] < 3 || best["3g.20gb"] != 1 {
		t.Errorf("best layout %v does not take the three holders back", best)
	}
	if e, ok := gpu.Cheapest("3g.20gb", 1, func(s Slot) (int64, bool) { return 1, s.Start != 5 }); !ok || len(e.Slots) != 2 {
		t.Errorf("with the holder at 5 staying: %+v %v, want the two at 0 and 1", e, ok)
	}
}

// The same counts at other positions decide differently.
func TestPositionsDecide(t *testing.T) {
	if f := a100(t, "3g.20gb@0", "1g.5gb@4", "1g.5gb@5", "1g.5gb@6").Fit("1g.5gb"); f.Start != -1 {
		t.Errorf("slot 7 took a 1g: %+v", f)
	}
	if f := a100(t, "3g.20gb@4", "1g.5gb@0", "1g.5gb@1", "1g.5gb@2").Fit("1g.5gb"); f.Start != 3 {
		t.Errorf("fit %+v, want start 3", f)
	}
}

func TestIdleInstancesAreRoom(t *testing.T) {
	gpu := a100(t, "1g.5gb@0 idle", "1g.5gb@1 idle", "1g.5gb@6")
	got := gpu.Fit("2g.10gb")
	if got.Start < 0 || got.Room != 3 || got.Idle != 0 {
		t.Errorf("fit %+v, want three rooms in unheld slices", got)
	}
	if got := gpu.Fit("1g.5gb"); got.Idle != 2 || got.Held != 1 || got.Room != 6 {
		t.Errorf("fit %+v, want 2 idle, 1 held, room for 6", got)
	}
}

func TestReadRefuses(t *testing.T) {
	in := func(p string, start, size int) nodeprobe.Instance {
		return nodeprobe.Instance{Profile: p, Start: start, Size: size}
	}
	cases := map[string]struct {
		product   string
		profiles  []nodeprobe.Profile
		instances []nodeprobe.Instance
		want      string
	}{
		"overlap":            {"NVIDIA A100-SXM4-40GB", nil, []nodeprobe.Instance{in("3g.20gb", 0, 4), in("1g.5gb", 3, 1)}, "overlaps"},
		"start never given":  {"NVIDIA A100-SXM4-40GB", nil, []nodeprobe.Instance{in("2g.10gb", 1, 2)}, "starts at memory slice 1"},
		"size zero":          {"NVIDIA A100-SXM4-40GB", nil, []nodeprobe.Instance{in("1g.5gb", 1, 0)}, "covers 0 memory slices"},
		"profile unknown":    {"NVIDIA A100-SXM4-40GB", nil, []nodeprobe.Instance{in("9g.1gb", 1, 1)}, "does not have"},
		"product unknown":    {"ACME 1", nil, nil, `"ACME 1"`},
		"no starts reported": {"ACME 1", []nodeprobe.Profile{{Name: "1g.1gb", ComputeSlices: 1, MemorySlices: 1, Max: 1}}, nil, "no start positions"},
		"start far outside":  {"ACME 1", []nodeprobe.Profile{{Name: "1g.1gb", ComputeSlices: 1, MemorySlices: 1, Max: 1, Starts: []int{64}}}, nil, "outside"},
	}
	for name, c := range cases {
		_, err := Read("n1", nodeprobe.GPU{Index: 3, UUID: "GPU-9", Product: c.product, Profiles: c.profiles, Instances: c.instances})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "GPU 3 (GPU-9) of n1") {
			t.Errorf("%s: error %v, want one naming the GPU and %q", name, err, c.want)
		}
	}
}

func TestFitAllocatesNothing(t *testing.T) {
	gpu := a100(t, "1g.5gb@0", "1g.5gb@1", "1g.5gb@5")
	if n := testing.AllocsPerRun(100, func() { gpu.Fit("3g.20gb") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFit(b *testing.B) {
	gpu := a100(b, "1g.5gb@0", "1g.5gb@1", "1g.5gb@5")
	b.ReportAllocs()
	for b.Loop() {
		gpu.Fit("3g.20gb")
	}
}
