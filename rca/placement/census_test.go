package placement

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
)

// randomGPU holds random legal instances of a model, some of them held.
func randomGPU(t *testing.T, rng *rand.Rand, m nodeprobe.Model) GPU {
	t.Helper()
	gpu, err := Read("n", nodeprobe.GPU{Product: m.Names[0], Profiles: m.Profiles})
	if err != nil {
		t.Fatal(err)
	}
	layouts := gpu.Grid.Layouts()
	slots, ok := gpu.Grid.Place(layouts[rng.IntN(len(layouts))])
	if !ok {
		t.Fatal("a listed layout has no place")
	}
	for i := range slots {
		slots[i].Held = rng.IntN(2) == 0
	}
	gpu.Slots = slots
	return gpu
}

// The sums that are kept equal those counted from the start, whatever came and went.
func TestCensusKeepsItsSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var models []nodeprobe.Model
	for _, m := range nodeprobe.Models() {
		if len(m.Profiles) > 0 && len(m.Names) > 0 {
			models = append(models, m)
		}
	}
	var kept Census
	var gpus []GPU
	asked := func(profile string) float64 { return float64(len(profile) % 3) }
	for range 400 {
		if n := len(gpus); n > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(n)
			kept.Remove(gpus[i])
			gpus = append(gpus[:i], gpus[i+1:]...)
		} else {
			gpu := randomGPU(t, rng, models[rng.IntN(len(models))])
			kept.Add(gpu)
			gpus = append(gpus, gpu)
		}
		free, room, left := 0, map[string]int{}, map[string]int{}
		wasted := 0.0
		for _, gpu := range gpus {
			own, sum := 0, 0.0
			for _, p := range gpu.Grid.Profiles() {
				f := gpu.Fit(p.Name)
				own = f.Free
				room[p.Name] += f.Room
				left[p.Name] += f.Free - f.Room*p.MemorySlices
				sum += asked(p.Name)
			}
			free += own
			for _, p := range gpu.Grid.Profiles() {
				f := gpu.Fit(p.Name)
				w := asked(p.Name) / sum
				if sum == 0 {
					w = 1 / float64(len(gpu.Grid.Profiles()))
				}
				wasted += w * float64(f.Free-f.Room*p.MemorySlices)
			}
		}
		if kept.Free() != free {
			t.Fatalf("free %d, want %d", kept.Free(), free)
		}
		tallies := kept.Tallies()
		if len(tallies) != len(room) {
			t.Fatalf("%d profiles, want %d", len(tallies), len(room))
		}
		for _, y := range tallies {
			if y.Placeable != room[y.Profile] || y.Unusable != left[y.Profile] {
				t.Fatalf("%+v, want %d and %d", y, room[y.Profile], left[y.Profile])
			}
		}
		want := 0.0
		if free > 0 {
			want = wasted / float64(free)
		}
		if got := kept.Fragmentation(asked); math.Abs(got-want) > 1e-9 {
			t.Fatalf("fragmentation %v, want %v", got, want)
		}
	}
}
