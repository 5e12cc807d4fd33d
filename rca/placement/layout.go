package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxTries bounds the enumeration of a reported geometry that no board has: the
// richest board known takes about 1,400 tries.
const maxTries = 1 << 20

// Layout is a multiset of instances on one GPU: profile name to count. It is
// what mig-parted compares.
type Layout map[string]int

// String is the layout in one line, by profile name.
func (l Layout) String() string {
	var parts []string
	for name, n := range l {
		parts = append(parts, fmt.Sprintf("%d×%s", n, name))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// Place finds legal positions for a layout, in an order in which the instances
// can be created (the largest first: they have the fewest starts); false when
// there are none. mig-manager cannot be asked for these starts: it chooses by
// itself.
func (g *Grid) Place(l Layout) ([]Slot, bool) {
	counts := make([]int, len(g.profiles))
	for name, n := range l {
		i := g.index(name)
		if i < 0 || n < 0 || n > g.limits[i] {
			return nil, false
		}
		counts[i] += n
	}
	return g.placeCounts(counts)
}

func (g *Grid) placeCounts(counts []int) ([]Slot, bool) {
	var order []int
	memory, compute := 0, 0
	for i, n := range counts {
		memory += n * g.profiles[i].MemorySlices
		compute += n * g.profiles[i].ComputeSlices
		if n > g.limits[i] || memory > g.slices {
			return nil, false
		}
		for range n {
			order = append(order, i)
		}
	}
	if g.binds && compute > g.compute {
		return nil, false
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.shapeOf[a], g.shapeOf[b]) })
	placed := make([]Slot, len(order))
	if !g.place(order, placed, 0, maxSlices) {
		return nil, false
	}
	return placed, true
}

// place puts the first of order at one of its lowest starts, up to below of
// them, and goes on; it tries the highest first, as the driver does. Instances
// of one shape follow each other in falling order, so that each set of slices is
// met once.
func (g *Grid) place(order []int, placed []Slot, occupied uint64, below int) bool {
	if len(order) == 0 {
		return true
	}
	s := &g.shapes[g.shapeOf[order[0]]]
	for k := min(below, len(s.starts)) - 1; k >= 0; k-- {
		if occupied&s.masks[k] != 0 {
			continue
		}
		next := maxSlices
		if len(order) > 1 && g.shapeOf[order[1]] == g.shapeOf[order[0]] {
			next = k
		}
		if g.place(order[1:], placed[1:], occupied|s.masks[k], next) {
			placed[0] = Slot{Profile: g.profiles[order[0]].Name, Start: s.starts[k], Size: s.size}
			return true
		}
	}
	return false
}

// Layouts lists every layout that can exist, without the empty one: those of
// fewer profiles first, then by their text. They are the grid's own: read only.
// A geometry far beyond any board's (about a million candidates) has none listed.
func (g *Grid) Layouts() []Layout {
	options := g.layouts()
	out := make([]Layout, len(options))
	for i := range options {
		out[i] = options[i].layout
	}
	return out
}

// option is one layout that can exist.
type option struct {
	layout Layout
	counts []int // the same by profile
	memory int   // slices covered
}

func (g *Grid) enumerate() []option {
	var out []option
	tries := 0
	counts := make([]int, len(g.profiles))
	var walk func(i, memory, compute int)
	walk = func(i, memory, compute int) {
		if memory > g.slices || g.binds && compute > g.compute || tries > maxTries {
			return
		}
		if i < len(g.profiles) {
			for n := range g.limits[i] + 1 {
				counts[i] = n
				walk(i+1, memory+n*g.profiles[i].MemorySlices, compute+n*g.profiles[i].ComputeSlices)
			}
			counts[i] = 0
			return
		}
		tries++
		if _, ok := g.placeCounts(counts); ok && memory > 0 {
			out = append(out, option{g.layoutOf(counts), slices.Clone(counts), memory})
		}
	}
	walk(0, 0, 0)
	if tries > maxTries {
		return nil
	}
	slices.SortFunc(out, func(a, b option) int {
		return cmp.Or(cmp.Compare(len(a.layout), len(b.layout)), strings.Compare(a.layout.String(), b.layout.String()))
	})
	return out
}

func (g *Grid) layoutOf(counts []int) Layout {
	l := Layout{}
	for i, n := range counts {
		if n > 0 {
			l[g.profiles[i].Name] = n
		}
	}
	return l
}
