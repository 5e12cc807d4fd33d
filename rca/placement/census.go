package placement

import (
	"cmp"
	"slices"
)

// Census sums over GPUs what their unheld memory slices could hold. The sums are
// kept, so that asking costs the same however many GPUs were counted. The zero
// value is empty. It is not safe for concurrent use.
type Census struct {
	grids map[*Grid]*tally
}

// tally is the sum over the GPUs of one model. Free and unusable are memory
// slices; by profile of the grid.
type tally struct {
	gpus, free     int
	unusable, room []int
}

// Tally is what all GPUs counted offer one profile.
type Tally struct {
	Profile string
	// Placeable is how many instances the unheld slices could hold at once.
	Placeable int
	// Unusable is how many unheld memory slices are then left over.
	Unusable int
}

// Add counts a GPU.
func (c *Census) Add(gpu GPU) { c.add(gpu, 1) }

// Remove takes back what Add counted for the same GPU with the same slots.
func (c *Census) Remove(gpu GPU) { c.add(gpu, -1) }

func (c *Census) add(gpu GPU, sign int) {
	if c.grids == nil {
		c.grids = map[*Grid]*tally{}
	}
	g := gpu.Grid
	t := c.grids[g]
	if t == nil {
		t = &tally{unusable: make([]int, len(g.profiles)), room: make([]int, len(g.profiles))}
		c.grids[g] = t
	}
	for i := range g.profiles {
		f := gpu.Fit(g.profiles[i].Name)
		t.room[i] += sign * f.Room
		t.unusable[i] += sign * (f.Free - f.Room*g.profiles[i].MemorySlices)
		if i == 0 {
			t.free += sign * f.Free
		}
	}
	if t.gpus += sign; t.gpus == 0 {
		delete(c.grids, g)
	}
}

// Free is the number of memory slices that nobody holds.
func (c *Census) Free() int {
	n := 0
	for _, t := range c.grids {
		n += t.free
	}
	return n
}

// Tallies lists the profiles of all models counted, by name.
func (c *Census) Tallies() []Tally {
	byName := map[string]*Tally{}
	for g, t := range c.grids {
		for i, p := range g.profiles {
			sum := byName[p.Name]
			if sum == nil {
				sum = &Tally{Profile: p.Name}
				byName[p.Name] = sum
			}
			sum.Placeable += t.room[i]
			sum.Unusable += t.unusable[i]
		}
	}
	out := make([]Tally, 0, len(byName))
	for _, t := range byName {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Tally) int { return cmp.Compare(a.Profile, b.Profile) })
	return out
}

// Fragmentation is the share of the unheld slices that the next request could
// not use, profiles weighed by how much each is asked for: of the models that
// nobody asked anything of, all alike. 0 when nothing is unheld. The idea is
// FGD's (Weng et al., USENIX ATC 2023), in slices of MIG.
func (c *Census) Fragmentation(asked func(profile string) float64) float64 {
	wasted, free := 0.0, 0
	for g, t := range c.grids {
		weights, sum := make([]float64, len(g.profiles)), 0.0
		for i, p := range g.profiles {
			weights[i] = asked(p.Name)
			sum += weights[i]
		}
		for i := range weights {
			w := 1 / float64(len(weights))
			if sum > 0 {
				w = weights[i] / sum
			}
			wasted += w * float64(t.unusable[i])
		}
		free += t.free
	}
	if free == 0 {
		return 0
	}
	return wasted / float64(free)
}
