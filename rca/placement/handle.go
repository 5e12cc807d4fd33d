package placement

import "fmt"

// State is what decides about every profile on a GPU, whatever else it holds.
// The zero State is a GPU that nobody holds.
type State struct {
	held    uint64 // memory slices
	limited uint64 // how many instances of each limited profile are held, 4 bits each
	compute int32  // compute slices of held instances, where they can bind
}

// A profile is limited when its maximum is below what its slices allow. States
// count up to 16 of them, each up to 15: RTX PRO 6000 has the most.
const (
	limitedBits  = 4
	maxLimited   = 64 / limitedBits
	maxCountable = 1<<limitedBits - 1
)

// Handle is a profile of a Grid, found once.
type Handle struct {
	table   []answer // by held slices; empty where compute decides too, or the board is too large
	limited bool     // its maximum decides too
	shift   uint8    // where a State counts it then
	max     uint8
	grid    *Grid
	profile int
}

// Handle finds a profile by either spelling of its name.
func (g *Grid) Handle(name string) (Handle, bool) {
	i, ok := g.byName[name]
	if !ok {
		return Handle{}, false
	}
	return g.handle(i), true
}

func (g *Grid) handle(i int) Handle {
	h := Handle{grid: g, profile: i}
	if !g.binds {
		h.table = g.shapes[g.shapeOf[i]].table
	}
	if shift := g.shift[i]; shift >= 0 {
		h.limited, h.shift, h.max = true, uint8(shift), uint8(g.profiles[i].Max)
	}
	return h
}

// Fit is the start that leaves the most room, -1 for none, and how many instances
// the unheld slices could hold at once.
func (h *Handle) Fit(s State) (start, room int) {
	if int(s.held) >= len(h.table) {
		return h.grid.fitState(h.profile, s)
	}
	a := &h.table[s.held]
	if !h.limited {
		return int(a.best), int(a.room)
	}
	room = min(int(a.room), int(h.max)-int(s.limited>>(h.shift&63)&maxCountable))
	if room == 0 {
		return -1, 0
	}
	return int(a.best), room
}

func (g *Grid) fitState(profile int, s State) (start, room int) {
	st := state{held: s.held, compute: int(s.compute)}
	if shift := g.shift[profile]; shift >= 0 {
		st.same = int(s.limited >> shift & maxCountable)
	}
	return g.fit(profile, st)
}

// harm ranks what placing one takes from others; 0 on a board too large for a
// table.
func (h *Handle) harm(s State) uint8 {
	if t := h.grid.shapes[h.grid.shapeOf[h.profile]].table; len(t) > 0 {
		return t[s.held&uint64(len(t)-1)].harm
	}
	return 0
}

// hold adds an instance to the state.
func (s *State) hold(g *Grid, profile, start int) {
	s.held |= mask(start, g.profiles[profile].MemorySlices)
	if shift := g.shift[profile]; shift >= 0 {
		s.limited += 1 << shift
	}
	if g.binds {
		s.compute += int32(g.profiles[profile].ComputeSlices)
	}
}

// release takes it out again.
func (s *State) release(g *Grid, profile, start int) {
	s.held &^= mask(start, g.profiles[profile].MemorySlices)
	if shift := g.shift[profile]; shift >= 0 {
		s.limited -= 1 << shift
	}
	if g.binds {
		s.compute -= int32(g.profiles[profile].ComputeSlices)
	}
}

// State is the GPU as its Slots are now.
func (gpu GPU) State() State {
	var s State
	for _, slot := range gpu.Slots {
		if i := gpu.Grid.index(slot.Profile); slot.Held && i >= 0 {
			s.hold(gpu.Grid, i, slot.Start)
		}
	}
	return s
}

// shifts finds where a State counts each profile, -1 where it need not. The error
// is for a geometry that no board has.
func (g *Grid) shifts() error {
	limited := 0
	for i, p := range g.profiles {
		g.shift = append(g.shift, -1)
		if p.Max >= g.shapes[g.shapeOf[i]].room(0) {
			continue
		}
		if limited == maxLimited || p.Max > maxCountable {
			return fmt.Errorf("profile %s: at most %d instances, fewer than its slices allow; no more than %d such profiles of up to %d are counted", p.Name, p.Max, maxLimited, maxCountable)
		}
		g.shift[i] = limited * limitedBits
		limited++
	}
	return nil
}
