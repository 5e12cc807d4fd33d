package placement_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// The cheapest eviction on random states of each kind of board, with random
// costs and holders who may not leave, is that of trying every set of victims.
func TestCheapest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	plans, impossible := 0, 0
	for _, m := range []nodeprobe.Model{model(t, "A100-40GB"), model(t, "A30-24GB"), model(t, "RTX-PRO-6000-Blackwell-96GB"), tight} {
		j := newJudge(m.Profiles)
		sets := j.sets()
		for range 400 {
			set := sets[random.IntN(len(sets))]
			costs := make([]int64, len(set))
			for k := range costs {
				costs[k] = random.Int64N(5) - 1
			}
			gpu := gpuOf(t, m, set, nil)
			cost := func(s placement.Slot) (int64, bool) {
				k := slices.IndexFunc(set, func(a at) bool { return a.start == s.Start })
				return max(0, costs[k]), costs[k] >= 0
			}
			for i, p := range m.Profiles {
				for n := 1; n <= p.Max+1; n++ {
					wantCost, wantCount, want := j.cheapest(set, costs, i, n)
					e, ok := gpu.Cheapest(p.Name, n, cost)
					if ok != want || ok && (e.Cost != wantCost || len(e.Slots) != wantCount || !carriesOut(j, set, e, i, n)) {
						t.Fatalf("%s, %v with costs %v, %d of %s: %+v %v, want cost %d, %d victims, %v",
							m.ID, set, costs, n, p.Name, e, ok, wantCost, wantCount, want)
					}
					if plans++; !want {
						impossible++
					}
				}
			}
		}
	}
	t.Logf("%d plans, %d of them impossible, 0 differ from the optimum", plans, impossible)
	if impossible == 0 || impossible == plans {
		t.Error("only one kind of answer was tried")
	}
}

// carriesOut does what the eviction says and asks the judge.
func carriesOut(j judge, set []at, e placement.Eviction, profile, n int) bool {
	after := slices.DeleteFunc(slices.Clone(set), func(a at) bool {
		return slices.ContainsFunc(e.Slots, func(s placement.Slot) bool { return s.Start == a.start })
	})
	if len(set)-len(after) != len(e.Slots) || len(e.Starts) != n || !slices.IsSorted(e.Starts) {
		return false
	}
	for _, s := range e.Starts {
		after = append(after, at{profile, s})
	}
	return j.legal(after)
}

// 1g held at 0, 1 and 5: five slices are unheld, a 3g fits nowhere, and the
// silicon would need the holder at 5 to leave.
func TestFragmentedByOneHolder(t *testing.T) {
	gpu := a100(t, on("1g.5gb", 0), on("1g.5gb", 1), on("1g.5gb", 5))
	if got, want := gpu.Fit("3g.20gb"), (placement.Fit{Supported: true, Free: 5, Start: -1}); got != want {
		t.Errorf("fit %+v, want %+v", got, want)
	}
	e, ok := gpu.Cheapest("3g.20gb", 1, func(placement.Slot) (int64, bool) { return 7, true })
	if !ok || e.Cost != 7 || !slices.Equal(e.Slots, gpu.Slots[2:]) || !slices.Equal(e.Starts, []int{4}) {
		t.Errorf("cheapest %+v %v, want the holder at 5, start 4", e, ok)
	}
	e, ok = gpu.Cheapest("3g.20gb", 1, func(s placement.Slot) (int64, bool) { return 1, s.Start != 5 })
	if !ok || e.Cost != 2 || !slices.Equal(e.Slots, gpu.Slots[:2]) || !slices.Equal(e.Starts, []int{0}) {
		t.Errorf("with the holder at 5 staying: %+v %v, want those at 0 and 1, start 0", e, ok)
	}
	if e, ok := gpu.Cheapest("3g.20gb", 1, noOne); ok {
		t.Errorf("with everybody staying: %+v", e)
	}
	if e, ok := gpu.Cheapest("3g.20gb", 3, func(placement.Slot) (int64, bool) { return 0, true }); ok {
		t.Errorf("three 3g on one board: %+v", e)
	}
}
