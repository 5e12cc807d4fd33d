package placement_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// gpuOf is the set as the engine sees it; idle instances stand between the held.
func gpuOf(t testing.TB, m nodeprobe.Model, held, idle []at) placement.GPU {
	t.Helper()
	report := nodeprobe.GPU{UUID: "GPU-1", Profiles: m.Profiles}
	for _, a := range held {
		report.Instances = append(report.Instances, instance(m.Profiles[a.profile], a.start))
	}
	for _, a := range idle {
		in := instance(m.Profiles[a.profile], a.start)
		in.Holder = nil
		report.Instances = append(report.Instances, in)
	}
	gpu, err := placement.Read("n", report)
	if err != nil {
		t.Fatalf("%s: %v", m.ID, err)
	}
	return gpu
}

// tight is no board that exists: compute runs out before memory, and maxima are
// below what the slices allow.
var tight = nodeprobe.Model{ID: "tight", Profiles: []nodeprobe.Profile{
	{Name: "a", ComputeSlices: 1, MemorySlices: 1, Max: 3, Starts: []int{0, 1, 2, 3, 4, 5}},
	{Name: "b", ComputeSlices: 2, MemorySlices: 2, Max: 2, Starts: []int{0, 1, 3, 4}},
	{Name: "b+me", ComputeSlices: 1, MemorySlices: 2, Max: 1, Starts: []int{0, 2, 4}},
	{Name: "c", ComputeSlices: 4, MemorySlices: 3, Max: 1, Starts: []int{0, 3}},
}}

func noOne(placement.Slot) (int64, bool) { return 0, false }

// Every legal state of every model, every profile, every count: the verdict is
// the judge's. Each state is judged twice: all held, and some idle.
func TestVerdicts(t *testing.T) {
	verdicts := 0
	random := rand.New(rand.NewPCG(1, 2))
	for _, m := range append(slices.Clone(nodeprobe.Models()), tight) {
		j := newJudge(m.Profiles)
		for _, set := range append(j.sets(), nil) {
			verdicts += verdictsOf(t, m, j, set, nil)
			var held, idle []at
			for _, a := range set {
				if random.IntN(2) == 0 {
					held = append(held, a)
				} else {
					idle = append(idle, a)
				}
			}
			verdicts += verdictsOf(t, m, j, held, idle)
		}
	}
	t.Logf("%d verdicts (state × profile × count), 0 false", verdicts)
}

func verdictsOf(t *testing.T, m nodeprobe.Model, j judge, held, idle []at) (verdicts int) {
	t.Helper()
	gpu := gpuOf(t, m, held, idle)
	for i, p := range m.Profiles {
		most, starts := j.more(held, i)
		want := placement.Fit{Supported: true, Free: gpu.Grid.Slices(), Start: -1, Room: most}
		for _, a := range held {
			want.Free -= m.Profiles[a.profile].MemorySlices
			if a.profile == i {
				want.Held++
			}
		}
		for _, a := range idle {
			if a.profile == i {
				want.Idle++
			}
		}
		got := gpu.Fit(p.Name)
		if slices.Contains(starts, got.Start) {
			want.Start = got.Start // which of them: TestStartLeavesMostRoom
		}
		if got != want || (got.Start >= 0) != (len(starts) > 0) {
			t.Fatalf("%s, %v, %s: %+v, want %+v at one of %v", m.ID, gpu.Slots, p.Name, got, want, starts)
		}
		for n := 1; n <= p.Max+1; n++ {
			verdicts++
			if e, ok := gpu.Cheapest(p.Name, n, noOne); ok != (most >= n) || ok && (len(e.Slots) > 0 || e.Cost != 0) {
				t.Fatalf("%s, %v, %d more of %s with nobody leaving: %+v %v, want %v", m.ID, gpu.Slots, n, p.Name, e, ok, most >= n)
			}
		}
	}
	return verdicts
}

// Of the legal starts, the chosen one leaves at least as many placeable
// instances of the largest size as any other; of equals, of the next size.
func TestStartLeavesMostRoom(t *testing.T) {
	m := model(t, "A100-40GB")
	j := newJudge(only(m, plain))
	var bySize []int
	for i := range j.profiles {
		bySize = append(bySize, i)
	}
	slices.SortStableFunc(bySize, func(a, b int) int {
		p, q := j.profiles[a], j.profiles[b]
		if p.MemorySlices != q.MemorySlices {
			return q.MemorySlices - p.MemorySlices
		}
		return len(p.Starts) - len(q.Starts)
	})
	for _, set := range append(j.sets(), nil) {
		gpu := gpuOf(t, nodeprobe.Model{Profiles: j.profiles}, set, nil)
		for i, p := range j.profiles {
			_, starts := j.more(set, i)
			var best []int
			want := -1
			for _, s := range starts {
				var left []int
				after := append(slices.Clone(set), at{i, s})
				for _, q := range bySize {
					n, _ := j.more(after, q)
					left = append(left, n)
				}
				if want < 0 || slices.Compare(left, best) > 0 {
					best, want = left, s
				}
			}
			if got := gpu.Fit(p.Name).Start; got != want {
				t.Fatalf("%v: %s at %d, want %d which leaves %v", gpu.Slots, p.Name, got, want, best)
			}
		}
	}
}

// a100 holds named instances of an A100-40GB.
func a100(t testing.TB, held ...nodeprobe.Instance) placement.GPU {
	t.Helper()
	gpu, err := placement.Read("n", nodeprobe.GPU{UUID: "GPU-1", Product: a100Name, Instances: held})
	if err != nil {
		t.Fatal(err)
	}
	return gpu
}

// on is an A100-40GB instance that somebody holds.
func on(profile string, start int) nodeprobe.Instance {
	m, _ := nodeprobe.ModelOf(a100Name)
	p, _ := m.Profile(profile)
	return instance(p, start)
}

// idle is one that nobody holds.
func idle(profile string, start int) nodeprobe.Instance {
	in := on(profile, start)
	in.Holder = nil
	return in
}

// The same counts at other positions decide differently.
func TestPositionsDecide(t *testing.T) {
	full := a100(t, on("3g.20gb", 0), on("1g.5gb", 4), on("1g.5gb", 5), on("1g.5gb", 6))
	roomy := a100(t, on("3g.20gb", 4), on("1g.5gb", 0), on("1g.5gb", 1), on("1g.5gb", 2))
	if got, want := full.Fit("1g.5gb"), (placement.Fit{Supported: true, Held: 3, Free: 1, Start: -1}); got != want {
		t.Errorf("slot 7: %+v, want %+v", got, want)
	}
	if got, want := roomy.Fit("1g.5gb"), (placement.Fit{Supported: true, Held: 3, Free: 1, Start: 3, Room: 1}); got != want {
		t.Errorf("slot 3: %+v, want %+v", got, want)
	}
	if f, r := full.Layout().String(), roomy.Layout().String(); f != r {
		t.Errorf("layouts %s and %s differ", f, r)
	}
}

// On these boards the starts are those that the driver chooses (MIG user guide
// R580, Example 2: 1g at 6, then at 4, 2g at 0, then no 3g).
func TestStartsAsTheDriver(t *testing.T) {
	one, two := on("1g.5gb", 6), on("1g.5gb", 4)
	for _, c := range []struct {
		gpu     placement.GPU
		profile string
		start   int
	}{
		{a100(t), "1g.5gb", 6}, {a100(t, one), "1g.5gb", 4}, {a100(t), "3g.20gb", 4},
		{a100(t, one, two), "2g.10gb", 0}, {a100(t, one, two, on("2g.10gb", 0)), "3g.20gb", -1},
	} {
		if got := c.gpu.Fit(c.profile).Start; got != c.start {
			t.Errorf("%v: %s at %d, want %d", c.gpu.Slots, c.profile, got, c.start)
		}
	}
}

func TestIdleInstancesAreRoom(t *testing.T) {
	gpu := a100(t, idle("1g.5gb", 0), idle("1g.5gb", 1), on("1g.5gb", 6))
	if got, want := gpu.Fit("2g.10gb"), (placement.Fit{Supported: true, Free: 7, Start: 4, Room: 3}); got != want {
		t.Errorf("2g %+v, want %+v", got, want)
	}
	if got, want := gpu.Fit("1g.5gb"), (placement.Fit{Supported: true, Idle: 2, Held: 1, Free: 7, Start: 4, Room: 6}); got != want {
		t.Errorf("1g %+v, want %+v", got, want)
	}
	if got, want := gpu.Fit("9g.90gb"), (placement.Fit{Free: 7, Start: -1}); got != want {
		t.Errorf("9g %+v, want %+v", got, want)
	}
	gpu.Slots[0].Held, gpu.Slots[0].Unknown = true, true // a caller that knows the report is old
	// Start 1 keeps 2g possible at 2 and at 4.
	if got, want := gpu.Fit("1g.5gb"), (placement.Fit{Supported: true, Idle: 1, Held: 2, Free: 6, Start: 1, Room: 5}); got != want {
		t.Errorf("1g after marking %+v, want %+v", got, want)
	}
}
