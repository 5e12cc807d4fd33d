package placement

import "math/bits"

// Index answers, for all GPUs of a cluster at once, whether an instance fits
// anywhere, how many do, and where one does best. It is kept event by event: an
// event costs the same however many GPUs there are, a question costs as much as
// there are classes of nodes. It is for one goroutine.
type Index struct {
	shelves []*shelf
	byKey   map[shelfKey]int32
	names   []string // of the profiles that are asked for
	gpus    []tracked
	looked  int // shelves, by questions
}

// Totals are what GPUs offer a profile: Now ≤ Remade ≤ Room.
type Totals struct {
	Now    int // instances of it that nobody holds
	Remade int // the same, with GPUs that nobody holds re-made for it
	Room   int // what unheld slices could hold, single idle instances re-made
}

// Place is where one instance goes.
type Place struct {
	GPU   int // its number in the index
	Start int
	Idle  bool // the instance exists
}

type shelfKey struct {
	class int
	grid  *Grid
}

// shelf has the GPUs of one model in one class of nodes, each at a position.
type shelf struct {
	shelfKey
	asked []int // of the index's names → profile, -1 where the model has none
	byOne []offer
	ids   []int32 // position → GPU
	spare []int32 // positions without one
}

// offer is what a shelf has for one profile: the positions of its GPUs by rank,
// those with an idle instance before any where it would have to be made, then by
// the least harm.
type offer struct {
	handle Handle
	totals Totals
	ranks  [maxHarm + 2]bitset
	some   uint16 // ranks with GPUs
}

// tracked is a GPU in the index.
type tracked struct {
	shelf int32 // nowhere: it is not there
	pos   int32
	state State
	slots []trackedSlot
	idle  []int8 // by profile
	gives []give // by profile
}

type trackedSlot struct {
	profile, start int8
	held           bool
}

// give is what a GPU has for one profile, as it was counted.
type give struct {
	rank               int8 // nowhere: it fits none
	idle, remade, room int8
}

// NewIndex makes an empty index.
func NewIndex() *Index { return &Index{byKey: map[shelfKey]int32{}} }

// Ask gives a profile, by either spelling, a number. The other methods take that number.
func (x *Index) Ask(profile string) int {
	for i, name := range x.names {
		if name == profile {
			return i
		}
	}
	x.names = append(x.names, profile)
	for _, s := range x.shelves {
		s.asked = append(s.asked, s.grid.index(profile))
	}
	return len(x.names) - 1
}

// Set puts a GPU in, or in the place of what was known of it. GPUs and classes of
// nodes are numbered by the caller, densely from 0.
func (x *Index) Set(id, class int, gpu GPU) {
	for len(x.gpus) <= id {
		x.gpus = append(x.gpus, tracked{shelf: nowhere})
	}
	x.Remove(id)
	t := &x.gpus[id]
	t.shelf = x.shelf(shelfKey{class, gpu.Grid})
	t.pos = x.shelves[t.shelf].take(int32(id))
	t.state, t.slots, t.idle, t.gives = State{}, t.slots[:0], t.idle[:0], t.gives[:0]
	for range gpu.Grid.profiles {
		t.idle, t.gives = append(t.idle, 0), append(t.gives, give{rank: nowhere})
	}
	for _, slot := range gpu.Slots {
		i := gpu.Grid.index(slot.Profile)
		if i < 0 {
			continue
		}
		t.slots = append(t.slots, trackedSlot{int8(i), int8(slot.Start), slot.Held})
		if slot.Held {
			t.state.hold(gpu.Grid, i, slot.Start)
		} else {
			t.idle[i]++
		}
	}
	x.refresh(t, true)
}

// Remove takes a GPU out.
func (x *Index) Remove(id int) {
	if id >= len(x.gpus) || x.gpus[id].shelf == nowhere {
		return
	}
	t := &x.gpus[id]
	x.refresh(t, false)
	s := x.shelves[t.shelf]
	s.spare = append(s.spare, t.pos)
	t.shelf = nowhere
}

// Hold says that somebody took, or gave back, the instance of a GPU at a start.
// False when there is no such instance.
func (x *Index) Hold(id, start int, held bool) bool {
	if id >= len(x.gpus) || x.gpus[id].shelf == nowhere {
		return false
	}
	t := &x.gpus[id]
	for i := range t.slots {
		s := &t.slots[i]
		if int(s.start) != start {
			continue
		}
		if s.held == held {
			return true
		}
		s.held = held
		if grid := x.shelves[t.shelf].grid; held {
			t.state.hold(grid, int(s.profile), start)
			t.idle[s.profile]--
		} else {
			t.idle[s.profile]++
			t.state.release(grid, int(s.profile), start)
		}
		x.refresh(t, true)
		return true
	}
	return false
}

// Totals sums over the classes that are allowed, by number; nil allows all.
func (x *Index) Totals(ask int, allowed []bool) Totals {
	var sum Totals
	for _, s := range x.shelves {
		x.looked++
		if i := s.asked[ask]; i >= 0 && (allowed == nil || allowed[s.class]) {
			t := &s.byOne[i].totals
			sum.Now, sum.Remade, sum.Room = sum.Now+t.Now, sum.Remade+t.Remade, sum.Room+t.Room
		}
	}
	return sum
}

// Best is where one instance does least harm: an idle one if there is any, else
// where it takes least room from larger profiles. False when it fits nowhere.
func (x *Index) Best(ask int, allowed []bool) (Place, bool) {
	var shelf *shelf
	var found *offer
	rank := maxHarm + 2
	profile := -1
	for _, s := range x.shelves {
		x.looked++
		i := s.asked[ask]
		if i < 0 || allowed != nil && !allowed[s.class] {
			continue
		}
		if o := &s.byOne[i]; o.some != 0 && o.lowest() < rank {
			shelf, found, rank, profile = s, o, o.lowest(), i
		}
	}
	if found == nil {
		return Place{}, false
	}
	id := shelf.ids[found.ranks[rank].least()]
	t := &x.gpus[id]
	if rank == 0 {
		for _, s := range t.slots {
			if int(s.profile) == profile && !s.held {
				return Place{int(id), int(s.start), true}, true
			}
		}
	}
	start, _ := found.handle.Fit(t.state)
	return Place{int(id), start, false}, true
}

func (x *Index) shelf(key shelfKey) int32 {
	if at, ok := x.byKey[key]; ok {
		return at
	}
	s := &shelf{shelfKey: key, byOne: make([]offer, len(key.grid.profiles))}
	for i := range s.byOne {
		s.byOne[i].handle = key.grid.handle(i)
	}
	for _, name := range x.names {
		s.asked = append(s.asked, key.grid.index(name))
	}
	x.byKey[key] = int32(len(x.shelves))
	x.shelves = append(x.shelves, s)
	return x.byKey[key]
}

// take gives a GPU a position.
func (s *shelf) take(id int32) int32 {
	if n := len(s.spare); n > 0 {
		pos := s.spare[n-1]
		s.spare, s.ids[pos] = s.spare[:n-1], id
		return pos
	}
	s.ids = append(s.ids, id)
	for i := range s.byOne {
		for rank := range s.byOne[i].ranks {
			s.byOne[i].ranks[rank].grow(len(s.ids))
		}
	}
	return int32(len(s.ids) - 1)
}

// refresh brings what is counted of a GPU up to date; nothing is where it is not
// there any more.
func (x *Index) refresh(t *tracked, there bool) {
	s := x.shelves[t.shelf]
	for i := range s.byOne {
		o, before := &s.byOne[i], &t.gives[i]
		now := give{rank: nowhere}
		if there {
			now = t.give(s.grid, i, &o.handle)
		}
		o.totals.Now += int(now.idle - before.idle)
		o.totals.Remade += int(now.remade - before.remade)
		o.totals.Room += int(now.room - before.room)
		if now.rank != before.rank {
			o.move(t.pos, before.rank, now.rank)
		}
		*before = now
	}
}

func (t *tracked) give(g *Grid, profile int, h *Handle) give {
	out := give{rank: nowhere, idle: t.idle[profile]}
	_, room := h.Fit(t.state)
	out.room, out.remade = int8(room), out.idle
	if t.state.held == 0 {
		out.remade = max(out.idle, int8(g.limits[profile]))
	}
	if out.idle > 0 {
		out.rank = 0
	} else if room > 0 {
		out.rank = 1 + int8(h.harm(t.state))
	}
	return out
}

// move puts a position from one rank into another.
func (o *offer) move(pos int32, from, to int8) {
	if from >= 0 {
		if o.ranks[from].remove(pos); o.ranks[from].empty() {
			o.some &^= 1 << from
		}
	}
	if to >= 0 {
		o.ranks[to].add(pos)
		o.some |= 1 << to
	}
}

// lowest is the best rank that has GPUs; some must not be zero.
func (o *offer) lowest() int { return bits.TrailingZeros16(o.some) }
