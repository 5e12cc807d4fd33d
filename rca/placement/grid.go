// Package placement says which MIG instances fit on which memory slices of a
// GPU, and what is the least that must leave for another one. It is exact and
// pure: tables come from the profiles and start positions that the driver
// reports, never from a profile's name.
package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unpend/unpend/nodeprobe"
)

// maxSlices is what one machine word holds; the largest board known has 12.
const maxSlices = 64

// Grid is the placement table of one GPU model: every profile with the memory
// slices it covers at each start it may have. A set of instances is possible
// when their slices do not overlap, no profile exceeds its maximum, and their
// compute slices do not exceed the board's (nvml.h,
// nvmlDeviceGetGpuInstancePossiblePlacements_v2; MIG user guide R580). Media
// engines are not counted: a reported profile does not carry them.
// A Grid never changes; GPUs with the same profiles share one.
type Grid struct {
	profiles []nodeprobe.Profile
	byName   map[string]int // by both spellings
	shapeOf  []int          // profile → shape
	shift    []int          // profile → where a State counts it, -1 nowhere
	limits   []int          // profile → how many an empty board can hold at once
	shapes   []shape        // the largest first
	slices   int
	compute  int  // compute slices of the board: those of its largest profile
	binds    bool // instances can run out of compute slices before memory slices
	layouts  func() []option
}

// NewGrid builds the table. It refuses a profile without a name or starts, of
// size below one, with negative figures, with a start outside 64 slices or given
// twice, and two profiles of one name or one device plugin spelling; the error
// names the profile. Compute slices of zero mean that they were not reported:
// the board's compute is then not judged.
func NewGrid(profiles []nodeprobe.Profile) (*Grid, error) {
	key := contentKey(profiles)
	if g := interned(key); g != nil {
		return g, nil
	}
	g, err := build(profiles)
	if err != nil {
		return nil, err
	}
	return intern(key, g), nil
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
	return NewGrid(m.Profiles)
}

// Slices is the number of memory slices of the board.
func (g *Grid) Slices() int { return g.slices }

// Profiles lists the profiles in the order they were reported, starts rising.
func (g *Grid) Profiles() []nodeprobe.Profile {
	out := slices.Clone(g.profiles)
	for i := range out {
		out[i].Starts = slices.Clone(out[i].Starts)
	}
	return out
}

// Profile finds a profile by name, or by the name the device plugin makes of it
// ('+' becomes '.'). Its Starts are the grid's own: read only.
func (g *Grid) Profile(name string) (nodeprobe.Profile, bool) {
	if i, ok := g.byName[name]; ok {
		return g.profiles[i], true
	}
	return nodeprobe.Profile{}, false
}

func (g *Grid) index(name string) int {
	if i, ok := g.byName[name]; ok {
		return i
	}
	return -1
}

func build(profiles []nodeprobe.Profile) (*Grid, error) {
	if len(profiles) == 0 {
		return nil, errors.New("no profiles are known")
	}
	g := &Grid{profiles: slices.Clone(profiles), byName: map[string]int{}}
	computeKnown := true
	for i := range g.profiles {
		p := &g.profiles[i]
		p.Starts = slices.Sorted(slices.Values(p.Starts))
		if err := check(*p); err != nil {
			return nil, err
		}
		for _, name := range spellings(p.Name) {
			if other, ok := g.byName[name]; ok {
				return nil, fmt.Errorf("profile %s: named twice, also as %s", p.Name, g.profiles[other].Name)
			}
			g.byName[name] = i
		}
		g.slices = max(g.slices, p.Starts[len(p.Starts)-1]+p.MemorySlices)
		g.compute = max(g.compute, p.ComputeSlices)
		computeKnown = computeKnown && p.ComputeSlices > 0
	}
	g.makeShapes()
	g.binds = computeKnown && g.mostCompute() > g.compute
	for i, p := range g.profiles {
		limit := min(p.Max, g.shapes[g.shapeOf[i]].room(0))
		if g.binds {
			limit = min(limit, g.compute/p.ComputeSlices)
		}
		g.limits = append(g.limits, limit)
	}
	if err := g.shifts(); err != nil {
		return nil, err
	}
	g.layouts = sync.OnceValue(g.enumerate)
	return g, nil
}

// check wants the starts sorted.
func check(p nodeprobe.Profile) error {
	switch {
	case p.Name == "":
		return fmt.Errorf("profile with id %d: has no name", p.ID)
	case p.MemorySlices < 1 || p.MemorySlices > maxSlices:
		return fmt.Errorf("profile %s: covers %d memory slices, 1 to %d were expected", p.Name, p.MemorySlices, maxSlices)
	case p.ComputeSlices < 0 || p.ComputeSlices > maxSlices:
		return fmt.Errorf("profile %s: covers %d compute slices, 0 to %d were expected", p.Name, p.ComputeSlices, maxSlices)
	case len(p.Starts) == 0:
		return fmt.Errorf("profile %s: has no start positions", p.Name)
	case p.Max < 1:
		return fmt.Errorf("profile %s: at most %d instances, at least one was expected", p.Name, p.Max)
	}
	for i, start := range p.Starts {
		if start < 0 || start > maxSlices-p.MemorySlices {
			return fmt.Errorf("profile %s: start %d is outside 0..%d", p.Name, start, maxSlices-p.MemorySlices)
		}
		if i > 0 && start == p.Starts[i-1] {
			return fmt.Errorf("profile %s: start %d is given twice", p.Name, start)
		}
	}
	return nil
}

// spellings are the names of a profile: NVML's, and the device plugin's where
// it differs.
func spellings(name string) []string {
	if plugin := strings.ReplaceAll(name, "+", "."); plugin != name {
		return []string{name, plugin}
	}
	return []string{name}
}

// mostCompute is the most compute slices that instances which do not overlap
// could ask for: where it is within the board's, compute never decides.
func (g *Grid) mostCompute() int {
	most := make([]int, g.slices+1) // of the slices from here on
	for x := g.slices - 1; x >= 0; x-- {
		most[x] = most[x+1]
		for _, p := range g.profiles {
			if slices.Contains(p.Starts, x) {
				most[x] = max(most[x], p.ComputeSlices+most[x+p.MemorySlices])
			}
		}
	}
	return most[0]
}
