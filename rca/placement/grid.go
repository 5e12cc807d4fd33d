// Package placement says which MIG instances fit on which memory slices of a
// GPU, and what is the least that must leave for another one. It is exact and
// pure: tables come from the profiles and start positions that the driver
// reports, never from a profile's name.
package placement

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/unpend/unpend/nodeprobe"
)

// maxSlices is what one machine word holds; the largest board known has 12.
const maxSlices = 64

// Grid is the table of one GPU model: every profile with the memory slices it
// covers at each start it may have. A set of instances is possible when their
// slices do not overlap, no profile exceeds its maximum, and the compute slices
// do not exceed the board's (nvml.h, nvmlDeviceGetGpuInstancePossiblePlacements_v2;
// MIG user guide R580).
type Grid struct {
	profiles []nodeprobe.Profile
	masks    [][]uint64 // per profile, per start: the slices covered
	slices   int
	compute  int
	layouts  func() []Layout
}

// NewGrid builds the table. It refuses profiles without starts, sizes below one,
// starts outside the word, and two profiles of one name; the error names the
// profile.
func NewGrid(profiles []nodeprobe.Profile) (*Grid, error) {
	if len(profiles) == 0 {
		return nil, fmt.Errorf("no profiles are known")
	}
	g := &Grid{profiles: slices.Clone(profiles)}
	seen := map[string]bool{}
	for k, p := range g.profiles {
		switch {
		case p.Name == "" || seen[p.Name]:
			return nil, fmt.Errorf("profile %q: empty or named twice", p.Name)
		case p.MemorySlices < 1 || p.ComputeSlices < 1:
			return nil, fmt.Errorf("profile %s: covers %d memory and %d compute slices, at least one of each was expected", p.Name, p.MemorySlices, p.ComputeSlices)
		case len(p.Starts) == 0:
			return nil, fmt.Errorf("profile %s: has no start positions", p.Name)
		case p.Max < 1:
			return nil, fmt.Errorf("profile %s: at most %d instances, at least one was expected", p.Name, p.Max)
		}
		seen[p.Name] = true
		g.profiles[k].Starts = slices.Sorted(slices.Values(p.Starts))
		p = g.profiles[k]
		masks := make([]uint64, len(p.Starts))
		for i, start := range p.Starts {
			if start < 0 || start+p.MemorySlices > maxSlices {
				return nil, fmt.Errorf("profile %s: start %d is outside 0..%d", p.Name, start, maxSlices-p.MemorySlices)
			}
			masks[i] = mask(start, p.MemorySlices)
			g.slices = max(g.slices, start+p.MemorySlices)
		}
		g.masks = append(g.masks, masks)
		g.compute = max(g.compute, p.ComputeSlices)
	}
	g.layouts = sync.OnceValue(g.enumerate)
	return g, nil
}

// GridOf builds the table of a GPU: from its profiles as reported, else from
// what is known of its model. The error names a product that is not known.
func GridOf(gpu nodeprobe.GPU) (*Grid, error) {
	if len(gpu.Profiles) > 0 {
		return NewGrid(gpu.Profiles)
	}
	m, ok := nodeprobe.ModelOf(gpu.Product)
	if !ok {
		return nil, fmt.Errorf("product %q reports no profiles and is not in the table of boards", gpu.Product)
	}
	return modelGrid(m)
}

var modelGrids sync.Map // model id → *Grid: the table of boards never changes

func modelGrid(m nodeprobe.Model) (*Grid, error) {
	if g, ok := modelGrids.Load(m.ID); ok {
		return g.(*Grid), nil
	}
	g, err := NewGrid(m.Profiles)
	if err == nil {
		modelGrids.Store(m.ID, g)
	}
	return g, err
}

func mask(start, size int) uint64 { return (1<<size - 1) << start }

// Slices is the number of memory slices of the board.
func (g *Grid) Slices() int { return g.slices }

// Profiles lists the profiles in the order they were reported.
func (g *Grid) Profiles() []nodeprobe.Profile { return g.profiles }

// Profile finds a profile by name, or by the name the device plugin makes of it
// ('+' becomes '.').
func (g *Grid) Profile(name string) (nodeprobe.Profile, bool) {
	if i := g.index(name); i >= 0 {
		return g.profiles[i], true
	}
	return nodeprobe.Profile{}, false
}

func (g *Grid) index(name string) int {
	for i := range g.profiles {
		if p := g.profiles[i].Name; p == name || sameSpelling(p, name) {
			return i
		}
	}
	return -1
}

// sameSpelling compares without building strings: it is on the hot path.
func sameSpelling(profile, plugin string) bool {
	if len(profile) != len(plugin) {
		return false
	}
	for i := range len(profile) {
		if c := profile[i]; c != plugin[i] && (c != '+' || plugin[i] != '.') {
			return false
		}
	}
	return true
}

// Layout is a multiset of instances on one GPU: profile name to count. It is
// what mig-parted compares.
type Layout map[string]int

func (l Layout) String() string {
	var parts []string
	for name, n := range l {
		parts = append(parts, fmt.Sprintf("%d×%s", n, name))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// Place finds legal positions for a layout, in an order in which the instances
// can be created; false when there are none.
func (g *Grid) Place(l Layout) ([]Slot, bool) {
	counts := make([]int, len(g.profiles))
	compute := 0
	for name, n := range l {
		i := g.index(name)
		if i < 0 || n < 0 || n > g.profiles[i].Max {
			return nil, false
		}
		counts[i] += n
		compute += n * g.profiles[i].ComputeSlices
	}
	if compute > g.compute {
		return nil, false
	}
	order := make([]int, 0, len(counts))
	for i, n := range counts {
		for range n {
			order = append(order, i)
		}
	}
	// The largest first: they have the fewest starts.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.profiles[b].MemorySlices, g.profiles[a].MemorySlices) })
	placed, ok := g.place(order, 0, maxSlices)
	return placed, ok
}

// place puts the first of order at a start below the given index and goes on;
// equal profiles follow each other in falling order, so each set is met once.
func (g *Grid) place(order []int, occupied uint64, below int) ([]Slot, bool) {
	if len(order) == 0 {
		return nil, true
	}
	p := g.profiles[order[0]]
	for s := min(below, len(p.Starts)) - 1; s >= 0; s-- { // from the top, as the driver does
		if occupied&g.masks[order[0]][s] != 0 {
			continue
		}
		next := maxSlices
		if len(order) > 1 && order[1] == order[0] {
			next = s
		}
		if rest, ok := g.place(order[1:], occupied|g.masks[order[0]][s], next); ok {
			return append([]Slot{{Profile: p.Name, Start: p.Starts[s], Size: p.MemorySlices}}, rest...), true
		}
	}
	return nil, false
}

// Layouts lists every layout that can exist, without the empty one, smallest
// first.
func (g *Grid) Layouts() []Layout { return g.layouts() }

func (g *Grid) enumerate() []Layout {
	var out []Layout
	counts := make([]int, len(g.profiles))
	var walk func(i, compute, memory int)
	walk = func(i, compute, memory int) {
		if compute > g.compute || memory > g.slices {
			return
		}
		if i == len(g.profiles) {
			l := Layout{}
			for k, n := range counts {
				if n > 0 {
					l[g.profiles[k].Name] = n
				}
			}
			if _, ok := g.Place(l); ok && len(l) > 0 {
				out = append(out, l)
			}
			return
		}
		for n := 0; n <= g.profiles[i].Max; n++ {
			counts[i] = n
			walk(i+1, compute+n*g.profiles[i].ComputeSlices, memory+n*g.profiles[i].MemorySlices)
		}
		counts[i] = 0
	}
	walk(0, 0, 0)
	slices.SortFunc(out, func(a, b Layout) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a.String(), b.String()))
	})
	return out
}

// room is how many instances of a profile fit into free slices at once.
func (g *Grid) room(profile int, occupied uint64) int {
	n := 0
	for _, m := range g.masks[profile] {
		if occupied&m == 0 { // equal intervals in rising order: taking the first that fits is exact
			occupied |= m
			n++
		}
	}
	return min(n, g.profiles[profile].Max)
}

func count(m uint64) int { return bits.OnesCount64(m) }
