package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/unpend/unpend/nodeprobe"
)

// Slot is one instance on a GPU. Start and Size are memory slices.
type Slot struct {
	Profile     string
	Start, Size int
	// Held is true also when the holder is unknown: unknown is never free.
	Held    bool
	Unknown bool
	Holder  nodeprobe.Holder
}

// GPU is one GPU whose report made sense.
type GPU struct {
	Node          string
	Index         int
	UUID, Product string
	Grid          *Grid
	Slots         []Slot // by start
}

// Read takes a reported GPU in. It refuses a geometry that cannot exist (an
// instance that overlaps another, a start or size the profile does not have, a
// profile the model does not have); the error names the GPU.
func Read(node string, gpu nodeprobe.GPU) (GPU, error) {
	fail := func(format string, args ...any) (GPU, error) {
		return GPU{}, fmt.Errorf("GPU %d (%s) of %s: %s", gpu.Index, gpu.UUID, node, fmt.Sprintf(format, args...))
	}
	grid, err := GridOf(gpu)
	if err != nil {
		return fail("%v", err)
	}
	out := GPU{Node: node, Index: gpu.Index, UUID: gpu.UUID, Product: gpu.Product, Grid: grid}
	var occupied uint64
	for _, in := range gpu.Instances {
		p, ok := grid.Profile(in.Profile)
		switch {
		case !ok:
			return fail("instance of profile %q, which the model does not have", in.Profile)
		case in.Size != p.MemorySlices:
			return fail("instance %s@%d covers %d memory slices, the profile covers %d", in.Profile, in.Start, in.Size, p.MemorySlices)
		case !slices.Contains(p.Starts, in.Start):
			return fail("instance %s starts at memory slice %d, the profile starts at %v", in.Profile, in.Start, p.Starts)
		case occupied&mask(in.Start, in.Size) != 0:
			return fail("instance %s@%d overlaps another", in.Profile, in.Start)
		}
		occupied |= mask(in.Start, in.Size)
		s := Slot{Profile: p.Name, Start: in.Start, Size: in.Size}
		if in.Holder != nil {
			s.Held, s.Unknown, s.Holder = true, in.Holder.Unknown || in.Holder.Pod == "", *in.Holder
		}
		out.Slots = append(out.Slots, s)
	}
	slices.SortFunc(out.Slots, func(a, b Slot) int { return cmp.Compare(a.Start, b.Start) })
	return out, nil
}

// Layout is what exists on the GPU now.
func (gpu GPU) Layout() Layout {
	l := Layout{}
	for _, s := range gpu.Slots {
		l[s.Profile]++
	}
	return l
}

// held is the set of slices that somebody, or nobody knows who, holds.
func (gpu GPU) held() uint64 {
	var m uint64
	for i := range gpu.Slots {
		if gpu.Slots[i].Held {
			m |= mask(gpu.Slots[i].Start, gpu.Slots[i].Size)
		}
	}
	return m
}

// Fit is the verdict of one profile on one GPU.
type Fit struct {
	Supported bool // the model has the profile
	Idle      int  // instances of the profile that nobody holds
	Held      int  // instances of it that are held; unknown holders count
	Free      int  // memory slices that nobody holds, with or without an instance
	// Start is the legal start, all of whose slices are unheld, that leaves most
	// room for the other profiles; -1 when there is none.
	Start int
	// Room is how many instances of the profile the unheld slices could hold at
	// once, idle instances re-made.
	Room int
}

// Fit judges a profile on the GPU.
func (gpu GPU) Fit(profile string) Fit {
	held := gpu.held()
	f := Fit{Start: -1, Free: gpu.Grid.slices - count(held)}
	i := gpu.Grid.index(profile)
	if i < 0 {
		return f
	}
	p := &gpu.Grid.profiles[i]
	f.Supported = true
	for k := range gpu.Slots {
		switch {
		case gpu.Slots[k].Profile != p.Name:
		case gpu.Slots[k].Held:
			f.Held++
		default:
			f.Idle++
		}
	}
	if !gpu.allowed(i) {
		return f
	}
	best := -1
	for s, m := range gpu.Grid.masks[i] {
		if held&m != 0 {
			continue
		}
		if left := gpu.Grid.value(held | m); left > best {
			best, f.Start = left, p.Starts[s]
		}
	}
	f.Room = min(gpu.Grid.room(i, held), p.Max-f.Held)
	return f
}

// allowed holds the maximum of the profile and the board's compute slices.
func (gpu GPU) allowed(profile int) bool {
	p := &gpu.Grid.profiles[profile]
	same, compute := 0, 0
	for k := range gpu.Slots {
		if !gpu.Slots[k].Held {
			continue
		}
		if gpu.Slots[k].Profile == p.Name {
			same++
		}
		if i := gpu.Grid.index(gpu.Slots[k].Profile); i >= 0 {
			compute += gpu.Grid.profiles[i].ComputeSlices
		}
	}
	return same < p.Max && compute+p.ComputeSlices <= gpu.Grid.compute
}

// value counts the placements that a state still allows: the more, the better
// the state can serve whatever comes.
func (g *Grid) value(occupied uint64) int {
	n := 0
	for i := range g.masks {
		for _, m := range g.masks[i] {
			if occupied&m == 0 {
				n += g.profiles[i].MemorySlices
			}
		}
	}
	return n
}

// Eviction is what has to leave a GPU for more instances of a profile.
type Eviction struct {
	Starts []int // where they would go
	Slots  []Slot
	Cost   int64
}

// Cheapest finds the cheapest set of held slots that must leave so that n more
// instances of the profile fit, if single instances can be re-made (what the
// silicon allows). cost says what a slot costs and whether it may leave at all.
// Cheapest by sum, then by number; false when no set will do.
func (gpu GPU) Cheapest(profile string, n int, cost func(Slot) (int64, bool)) (Eviction, bool) {
	i := gpu.Grid.index(profile)
	if i < 0 || n < 1 || n > gpu.Grid.profiles[i].Max {
		return Eviction{}, false
	}
	var best Eviction
	found := false
	var walk func(from int, taken uint64, starts []int)
	walk = func(from int, taken uint64, starts []int) {
		if len(starts) == n {
			if e, ok := gpu.clear(i, taken, starts, cost); ok && (!found || cmp.Or(cmp.Compare(e.Cost, best.Cost), cmp.Compare(len(e.Slots), len(best.Slots))) < 0) {
				best, found = e, true
			}
			return
		}
		for s := from; s < len(gpu.Grid.masks[i]); s++ {
			if m := gpu.Grid.masks[i][s]; taken&m == 0 {
				walk(s+1, taken|m, append(starts, gpu.Grid.profiles[i].Starts[s]))
			}
		}
	}
	walk(0, 0, nil)
	return best, found
}

// clear evicts what covers the taken slices, and what else must go for the
// profile's maximum and the board's compute slices.
func (gpu GPU) clear(profile int, taken uint64, starts []int, cost func(Slot) (int64, bool)) (Eviction, bool) {
	e := Eviction{Starts: slices.Clone(starts)}
	p := gpu.Grid.profiles[profile]
	same, compute := len(starts), len(starts)*p.ComputeSlices
	for _, s := range gpu.Slots {
		if !s.Held {
			continue
		}
		if taken&mask(s.Start, s.Size) == 0 {
			q, _ := gpu.Grid.Profile(s.Profile)
			compute += q.ComputeSlices
			if s.Profile == p.Name {
				same++
			}
			continue
		}
		c, may := cost(s)
		if !may {
			return e, false
		}
		e.Cost += c
		e.Slots = append(e.Slots, s)
	}
	return e, same <= p.Max && compute <= gpu.Grid.compute
}

// Relayouts lists the layouts with at least n instances of the profile for when
// everybody leaves the GPU (mig-manager re-makes it whole), best first: those
// that give the holders of now their profiles back beside the n, then those that
// keep most idle instances of now, then those that leave the fewest slices
// unused.
func (gpu GPU) Relayouts(profile string, n int) []Layout {
	i := gpu.Grid.index(profile)
	if i < 0 {
		return nil
	}
	name := gpu.Grid.profiles[i].Name
	held, now := Layout{}, gpu.Layout()
	for _, s := range gpu.Slots {
		if s.Held {
			held[s.Profile]++
		}
	}
	type option struct {
		layout            Layout
		back, kept, usage int
	}
	var options []option
	for _, l := range gpu.Grid.Layouts() {
		if l[name] < n || maps.Equal(l, now) {
			continue
		}
		o := option{layout: l}
		for q, c := range l {
			p, _ := gpu.Grid.Profile(q)
			o.usage += c * p.MemorySlices
			spare := c
			if q == name {
				spare -= n
			}
			o.back += min(spare, held[q])
			o.kept += min(spare, now[q])
		}
		options = append(options, o)
	}
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(cmp.Compare(b.back, a.back), cmp.Compare(b.kept, a.kept), cmp.Compare(b.usage, a.usage))
	})
	out := make([]Layout, len(options))
	for k, o := range options {
		out[k] = o.layout
	}
	return out
}
