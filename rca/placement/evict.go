package placement

import (
	"cmp"
	"slices"
)

// Eviction is what has to leave a GPU for more instances of a profile.
type Eviction struct {
	Starts []int // where they would go, rising
	Slots  []Slot
	Cost   int64
}

// Cheapest finds the cheapest set of held slots that must leave so that n more
// instances of the profile fit, if single instances can be re-made (what the
// silicon allows; idle ones cost nothing). cost is asked once per held slot for
// its price, which must not be negative, and whether it may leave at all.
// Cheapest by sum, then by number; the choice among equals is always the same.
// False when no set will do.
func (gpu GPU) Cheapest(profile string, n int, cost func(Slot) (int64, bool)) (Eviction, bool) {
	g := gpu.Grid
	i := g.index(profile)
	if i < 0 || n < 1 || n > g.limits[i] || gpu.Sick {
		return Eviction{}, false
	}
	p := &g.profiles[i]
	s := search{slices: g.slices, shape: &g.shapes[g.shapeOf[i]], n: n, holders: make([]holder, 0, len(gpu.Slots))}
	same, compute := 0, 0
	for k := range gpu.Slots {
		slot := &gpu.Slots[k]
		if !slot.Held {
			continue
		}
		h := holder{slot: k, start: slot.Start, end: slot.Start + slot.Size, compute: g.computeOf(slot.Profile)}
		h.cost, h.may = cost(*slot)
		if slot.Profile == p.Name {
			h.same = 1
		}
		same += h.same
		compute += h.compute
		s.holders = append(s.holders, h)
	}
	// Who stays is only counted where all of them could be too many.
	if most := p.Max - n; same > most {
		s.countSame, s.maxSame = true, most
	}
	if most := g.compute - n*p.ComputeSlices; g.binds && compute > most {
		s.countCompute, s.maxCompute = true, most
	}
	return s.run(gpu.Slots)
}

// search walks the slices upwards and decides at each whether to place an
// instance, and whether a holder that starts there stays. What it remembers per
// slice makes it a shortest path: no combination is tried twice.
type search struct {
	slices  int
	shape   *shape
	n       int
	holders []holder // by start

	countSame, countCompute bool
	maxSame, maxCompute     int // of those who stay

	memo []node
}

type holder struct {
	slot, start, end int
	same, compute    int
	cost             int64
	may              bool
}

// point is where the walk is: a holder that began below at has ended or leaves.
type point struct {
	at, left      int // next slice; instances still to place
	same, compute int // of those who stay so far, where counted
}

// node is the cheapest way on from a point.
type node struct {
	known, possible bool
	move            move
	leaving         int
	cost            int64
}

type move uint8

const (
	moveOn move = iota // the holder that starts here, if any, stays
	movePlace
	moveEvict
)

func (s *search) run(slots []Slot) (Eviction, bool) {
	s.memo = make([]node, (s.slices+1)*(s.n+1)*(s.maxSame+1)*(s.maxCompute+1))
	p := point{left: s.n}
	first := s.best(p)
	if !first.possible {
		return Eviction{}, false
	}
	e := Eviction{Cost: first.cost, Starts: make([]int, 0, s.n)}
	for p.at < s.slices {
		move := s.best(p).move
		if move == movePlace {
			e.Starts = append(e.Starts, p.at)
		}
		next, leaving, _, _ := s.step(p, move)
		for _, h := range leaving {
			e.Slots = append(e.Slots, slots[h.slot])
		}
		p = next
	}
	return e, true
}

func (s *search) best(p point) node {
	if p.at >= s.slices {
		return node{possible: p.left == 0}
	}
	known := &s.memo[((p.at*(s.n+1)+p.left)*(s.maxSame+1)+p.same)*(s.maxCompute+1)+p.compute]
	if known.known {
		return *known
	}
	out := node{known: true}
	for _, move := range [...]move{movePlace, moveOn, moveEvict} { // of equals the first, so low starts come first
		next, leaving, cost, ok := s.step(p, move)
		if !ok {
			continue
		}
		rest := s.best(next)
		cost += rest.cost
		count := len(leaving) + rest.leaving
		if rest.possible && (!out.possible || cmp.Or(cmp.Compare(cost, out.cost), cmp.Compare(count, out.leaving)) < 0) {
			out = node{known: true, possible: true, move: move, leaving: count, cost: cost}
		}
	}
	*known = out
	return out
}

// step is where a move leads, who leaves by it and what that costs; false when
// the move is not allowed.
func (s *search) step(p point, m move) (next point, leaving []holder, cost int64, ok bool) {
	next = p
	next.at = p.at + 1
	switch m {
	case movePlace:
		if p.left == 0 || !slices.Contains(s.shape.starts, p.at) {
			return p, nil, 0, false
		}
		next.at, next.left = p.at+s.shape.size, p.left-1
		leaving = s.between(p.at, next.at)
	case moveEvict:
		if leaving = s.between(p.at, next.at); len(leaving) == 0 {
			return p, nil, 0, false // nobody to evict: that is moveOn
		}
	default:
		for _, h := range s.between(p.at, next.at) {
			next.at = h.end
			if s.countSame {
				next.same += h.same
			}
			if s.countCompute {
				next.compute += h.compute
			}
		}
		return next, nil, 0, next.same <= s.maxSame && next.compute <= s.maxCompute
	}
	for _, h := range leaving {
		if !h.may {
			return p, nil, 0, false
		}
		cost += h.cost
	}
	return next, leaving, cost, true
}

// between are the holders that start at slices [from, to).
func (s *search) between(from, to int) []holder {
	i := 0
	for i < len(s.holders) && s.holders[i].start < from {
		i++
	}
	j := i
	for j < len(s.holders) && s.holders[j].start < to {
		j++
	}
	return s.holders[i:j]
}
