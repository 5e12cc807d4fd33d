package placement

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/unpend/unpend/nodeprobe"
)

// maxTabled is the number of memory slices up to which every question about a
// shape is answered from a table with an entry per set of held slices: 256 on
// boards of 8, 4,096 on the RTX PRO 6000.
const maxTabled = 12

// shape is what profiles of the same size and starts have in common. The media
// variants of a profile (+me, -me, +gfx) share their shape.
type shape struct {
	size   int
	starts []int
	masks  []uint64 // per start: the slices covered
	table  []answer // by held slices; empty on a board too large for one
}

// answer is what a set of held slices leaves to a shape.
type answer struct {
	room uint8 // how many fit at once
	best int8  // the start that leaves the most room, -1 for none
	harm uint8 // how much of the others' room that takes, as a rank: 0 for the least
}

func mask(start, size int) uint64 { return (1<<size - 1) << start }

func ones(m uint64) int { return bits.OnesCount64(m) }

// makeShapes groups the profiles, the largest shape first, and fills the tables.
func (g *Grid) makeShapes() {
	same := func(s shape, p nodeprobe.Profile) bool {
		return s.size == p.MemorySlices && slices.Equal(s.starts, p.Starts)
	}
	for _, p := range g.profiles {
		if !slices.ContainsFunc(g.shapes, func(s shape) bool { return same(s, p) }) {
			s := shape{size: p.MemorySlices, starts: p.Starts}
			for _, start := range p.Starts {
				s.masks = append(s.masks, mask(start, p.MemorySlices))
			}
			g.shapes = append(g.shapes, s)
		}
	}
	// Of one size, the shape with fewer starts is the harder one to place.
	slices.SortStableFunc(g.shapes, func(a, b shape) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(len(a.starts), len(b.starts)))
	})
	for _, p := range g.profiles {
		g.shapeOf = append(g.shapeOf, slices.IndexFunc(g.shapes, func(s shape) bool { return same(s, p) }))
	}
	if g.slices > maxTabled {
		return
	}
	for i := range g.shapes {
		table := make([]answer, 1<<g.slices)
		for held := range table {
			table[held].room = uint8(g.shapes[i].room(uint64(held)))
		}
		g.shapes[i].table = table
	}
	for i := range g.shapes { // after all rooms: they decide what is best
		for held := range g.shapes[i].table {
			g.shapes[i].table[held].best = int8(g.findBest(i, uint64(held)))
		}
		g.rankHarm(i)
	}
}

// maxHarm is the highest rank of harm; no board needs as many.
const maxHarm = 13

// rankHarm ranks the sets of held slices by the room that placing one of the
// shape takes from the shapes, the largest first.
func (g *Grid) rankHarm(shape int) {
	s := &g.shapes[shape]
	takes := func(held int) []int {
		out := make([]int, len(g.shapes))
		after := uint64(held) | mask(int(s.table[held].best), s.size)
		for i := range g.shapes {
			out[i] = g.shapes[i].room(uint64(held)) - g.shapes[i].room(after)
		}
		return out
	}
	var kinds [][]int
	for held := range s.table {
		if s.table[held].best < 0 {
			continue
		}
		if at, known := slices.BinarySearchFunc(kinds, takes(held), slices.Compare[[]int]); !known {
			kinds = slices.Insert(kinds, at, takes(held))
		}
	}
	for held := range s.table {
		if s.table[held].best >= 0 {
			at, _ := slices.BinarySearchFunc(kinds, takes(held), slices.Compare[[]int])
			s.table[held].harm = uint8(min(at, maxHarm))
		}
	}
}

// ask is room and best at once. Held slices beyond the board, which no report
// that was read has, do not matter.
func (g *Grid) ask(shape int, held uint64) (room, best int) {
	if t := g.shapes[shape].table; len(t) > 0 {
		a := t[held&uint64(len(t)-1)]
		return int(a.room), int(a.best)
	}
	return g.shapes[shape].room(held), g.findBest(shape, held)
}

// room is how many instances of the shape fit into unheld slices at once.
func (s *shape) room(held uint64) int {
	if len(s.table) > 0 {
		return int(s.table[held&uint64(len(s.table)-1)].room)
	}
	n := 0
	for _, m := range s.masks { // equal intervals in rising order: taking the first that fits is exact
		if held&m == 0 {
			held |= m
			n++
		}
	}
	return n
}

// findBest is the start whose slices are all unheld that leaves the most room:
// for the largest shape first, then for the next; the lowest of equals. -1 if
// there is none.
func (g *Grid) findBest(shape int, held uint64) int {
	s := &g.shapes[shape]
	found := -1
	var left uint64
	for k, m := range s.masks {
		if held&m == 0 && (found < 0 || g.roomier(held|m, left)) {
			found, left = s.starts[k], held|m
		}
	}
	return found
}

func (g *Grid) roomier(a, b uint64) bool {
	for i := range g.shapes {
		if x, y := g.shapes[i].room(a), g.shapes[i].room(b); x != y {
			return x > y
		}
	}
	return false
}
