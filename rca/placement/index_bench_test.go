package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/unpend/unpend/rca/placement"
)

// shelves is an index of nodes with 8 A100 in random states, in ten classes.
func shelves(t testing.TB, nodes int) (*placement.Index, []placement.GPU) {
	t.Helper()
	r := rand.New(rand.NewPCG(19, 20))
	kind := boardsOf(model(t, "A100-40GB"))
	x := placement.NewIndex()
	gpus := make([]placement.GPU, 0, 8*nodes)
	for node := range nodes {
		for range 8 {
			set := kind.sets[r.IntN(len(kind.sets))]
			cut := r.IntN(len(set) + 1)
			gpus = append(gpus, gpuOf(t, kind.model, set[:cut], set[cut:]))
			x.Set(len(gpus)-1, node%10, gpus[len(gpus)-1])
		}
	}
	return x, gpus
}

// P1: verdict and best start on one GPU, by handle and state.
func BenchmarkVerdict(b *testing.B) {
	gpu := a100(b, on("1g.5gb", 0), on("1g.5gb", 1), on("1g.5gb", 5))
	for _, profile := range []string{"1g.5gb", "3g.20gb", "1g.5gb+me"} {
		b.Run(profile, func(b *testing.B) {
			h, ok := gpu.Grid.Handle(profile)
			if !ok {
				b.Fatal("no handle")
			}
			state := gpu.State()
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				start, room := h.Fit(state)
				sum += start + room
			}
			_ = sum
		})
	}
}

// P2: fits anywhere, how many, best place. The ratio of the two sizes is what
// counts.
func BenchmarkAnywhere(b *testing.B) {
	allowed := []bool{true, false, true, true, true, false, true, true, true, true}
	for _, nodes := range []int{1000, 5000} {
		x, _ := shelves(b, nodes)
		ask := x.Ask("3g.20gb")
		b.Run(fmt.Sprintf("totals/nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if x.Totals(ask, allowed).Room == 0 {
					b.Fatal("none")
				}
			}
		})
		b.Run(fmt.Sprintf("best/nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := x.Best(ask, allowed); !ok {
					b.Fatal("none")
				}
			}
		})
	}
}

// P8: one instance is taken or given back, on one of 40,000 GPUs.
func BenchmarkEvent(b *testing.B) {
	x, gpus := shelves(b, 5000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(gpus)
		if slots := gpus[i].Slots; len(slots) > 0 {
			s := &slots[i%len(slots)]
			s.Held = !s.Held
			x.Hold(i, s.Start, s.Held)
		}
	}
}

// Questions look at each class once however many nodes there are, and neither
// they nor events allocate.
func TestIndexGrowth(t *testing.T) {
	looked := func(nodes int) int {
		x, gpus := shelves(t, nodes)
		ask := x.Ask("2g.10gb")
		if n := testing.AllocsPerRun(100, func() {
			x.Hold(3, gpus[3].Slots[0].Start, true)
			x.Hold(3, gpus[3].Slots[0].Start, false)
			x.Totals(ask, nil)
			x.Best(ask, nil)
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
		before := x.Looked()
		x.Totals(ask, nil)
		x.Best(ask, nil)
		return x.Looked() - before
	}
	if small, large := looked(20), looked(400); small != 20 || large != 20 {
		t.Errorf("20 nodes: %d shelves looked at, 400 nodes: %d; ten for each question were expected", small, large)
	}
	gpu := a100(t, on("1g.5gb", 0), on("1g.5gb", 5))
	h, _ := gpu.Grid.Handle("3g.20gb")
	if n := testing.AllocsPerRun(100, func() { h.Fit(gpu.State()) }); n > 0 {
		t.Errorf("a verdict: %v allocations", n)
	}
}
