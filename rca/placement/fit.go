package placement

// Fit is the verdict of one profile on one GPU.
type Fit struct {
	Supported bool // the model has the profile
	Idle      int  // instances of the profile that nobody holds; none on a sick GPU
	Held      int  // instances of it that are held; unknown holders count
	Free      int  // memory slices that nobody holds, with or without an instance
	// Start is the legal start, all of whose slices are unheld, that leaves the
	// most room for other instances, the largest first; -1 when there is none.
	Start int
	// Room is how many instances of the profile the unheld slices could hold at
	// once, idle instances re-made.
	Room int
}

// Fit judges a profile on the GPU. It allocates nothing.
func (gpu GPU) Fit(profile string) Fit {
	g := gpu.Grid
	i := g.index(profile)
	f := Fit{Supported: i >= 0}
	name := profile
	if f.Supported {
		name = g.profiles[i].Name
	}
	var s state
	for k := range gpu.Slots {
		slot := &gpu.Slots[k]
		switch same := slot.Profile == name; {
		case slot.Held:
			s.held |= mask(slot.Start, slot.Size)
			if same {
				f.Held++
			}
			if g.binds {
				s.compute += g.computeOf(slot.Profile)
			}
		case same:
			f.Idle++
		}
	}
	f.Free, f.Start = g.slices-ones(s.held), -1
	if gpu.Sick {
		f.Free, f.Idle = 0, 0
		return f
	}
	if f.Supported {
		s.same = f.Held
		f.Start, f.Room = g.fit(i, s)
	}
	return f
}

// state is what decides about one profile on a GPU: three words, whatever the
// GPU holds.
type state struct {
	held    uint64 // memory slices that somebody, or nobody knows who, holds
	same    int    // held instances of the profile
	compute int    // compute slices of held instances; counted where they can bind
}

// fit is the verdict from the tables: the best start, and how many more.
func (g *Grid) fit(profile int, s state) (start, room int) {
	room, start = g.ask(g.shapeOf[profile], s.held)
	room = min(room, g.profiles[profile].Max-s.same)
	if g.binds {
		room = min(room, (g.compute-s.compute)/g.profiles[profile].ComputeSlices)
	}
	if room <= 0 {
		return -1, 0
	}
	return start, room
}

func (g *Grid) computeOf(profile string) int {
	if i := g.index(profile); i >= 0 {
		return g.profiles[i].ComputeSlices
	}
	return 0
}
