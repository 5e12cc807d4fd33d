package placement

import (
	"slices"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
)

// Every entry of every table is what is computed without one; a board too large
// for tables answers the same questions.
func TestTables(t *testing.T) {
	for _, m := range nodeprobe.Models() {
		g, err := build(m.Profiles)
		if err != nil {
			t.Fatalf("%s: %v", m.ID, err)
		}
		if g.binds || g.compute != m.ComputeSlices || g.slices != m.MemorySlices {
			t.Errorf("%s: %d memory and %d compute slices, binds %v; the board has %d and %d", m.ID, g.slices, g.compute, g.binds, m.MemorySlices, m.ComputeSlices)
		}
		bare := *g
		bare.shapes = slices.Clone(g.shapes)
		for i := range bare.shapes {
			bare.shapes[i].table = nil
		}
		for i := range g.shapes {
			for held := range uint64(1) << g.slices {
				room, best := g.ask(i, held)
				if wantRoom, wantBest := bare.ask(i, held); room != wantRoom || best != wantBest {
					t.Fatalf("%s, size %d, held %b: room %d, best %d, want %d, %d", m.ID, g.shapes[i].size, held, room, best, wantRoom, wantBest)
				}
			}
		}
	}
}

func TestBoardWithoutTables(t *testing.T) {
	g, err := build([]nodeprobe.Profile{
		{Name: "x", MemorySlices: 16, Max: 4, Starts: []int{0, 16, 32, 48}},
		{Name: "y", MemorySlices: 1, Max: 64, Starts: []int{0, 63}},
	})
	if err != nil {
		t.Fatal(err)
	}
	start, room := g.fit(1, state{held: mask(48, 16)})
	if g.shapes[0].table != nil || start != 0 || room != 1 {
		t.Errorf("start %d, room %d, want 0, 1", start, room)
	}
	// Up to two x leave both ends to y, three leave one of them, four none.
	if l := g.Layouts(); len(l) != 3+3+3+2+1-1 {
		t.Errorf("%d layouts: %v", len(l), l)
	}
}

func one(Slot) (int64, bool) { return 1, true }

func TestAllocations(t *testing.T) {
	gpu := fragmented(t)
	for _, p := range gpu.Grid.profiles {
		if n := testing.AllocsPerRun(100, func() { gpu.Fit(p.Name) }); n != 0 {
			t.Errorf("fit of %s: %v allocations", p.Name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { gpu.Cheapest("3g.20gb", 1, one) }); n > 4 {
		t.Errorf("cheapest: %v allocations", n)
	}
}

// fragmented is an A100 with 1g held at 0, 1 and 5.
func fragmented(t testing.TB) GPU {
	t.Helper()
	report := nodeprobe.GPU{Product: "NVIDIA A100-SXM4-40GB"}
	for _, start := range []int{0, 1, 5} {
		report.Instances = append(report.Instances, nodeprobe.Instance{Profile: "1g.5gb", Start: start, Size: 1, Holder: &nodeprobe.Holder{Pod: "p"}})
	}
	gpu, err := Read("n", report)
	if err != nil {
		t.Fatal(err)
	}
	return gpu
}

// BenchmarkFit judges from the slots, and (state) from the tables alone.
func BenchmarkFit(b *testing.B) {
	gpu := fragmented(b)
	var held uint64
	for _, s := range gpu.Slots {
		held |= mask(s.Start, s.Size)
	}
	for i, p := range gpu.Grid.profiles {
		b.Run(p.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gpu.Fit(p.Name)
			}
		})
		b.Run(p.Name+"/state", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gpu.Grid.fit(i, state{held: held})
			}
		})
	}
}

func BenchmarkCheapest(b *testing.B) {
	gpu := fragmented(b)
	b.ReportAllocs()
	for b.Loop() {
		gpu.Cheapest("3g.20gb", 1, one)
	}
}

func BenchmarkRelayouts(b *testing.B) {
	gpu := fragmented(b)
	b.ReportAllocs()
	for b.Loop() {
		gpu.Relayouts("3g.20gb", 1)
	}
}
