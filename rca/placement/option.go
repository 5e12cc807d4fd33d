package placement

import (
	"maps"
	"math/bits"
	"slices"
)

// Option is one way to have instances of a profile in a place (a GPU, or a node
// whose GPUs are laid out together).
type Option struct {
	Fits   int   // instances that nobody holds then
	Remade bool  // instances of the place are re-made for it
	Leave  []int // tenants who leave for it, rising
}

// Remake says what is re-made when the instances of a GPU change.
type Remake int

// The ways to re-make instances.
const (
	Single   Remake = iota // any instance that nobody holds: what the silicon allows
	WholeGPU               // the GPU as a whole, when nobody holds any of it: mig-manager
)

// maxTenants is how many tenants of one GPU are weighed against each other, each
// set of them once. No board has as many instances.
const maxTenants = 12

// Options lists the ways to have instances of a profile on the GPU, without those
// for which more tenants leave than for another with as many instances. tenant
// names who holds a slot: a number from 0, or a negative one for somebody who
// cannot leave. It does not name who is not needed: on a GPU with more than
// twelve tenants the others stay.
func (gpu GPU) Options(profile string, remake Remake, tenant func(Slot) int) []Option {
	i := gpu.Grid.index(profile)
	if i < 0 || gpu.Sick {
		return nil
	}
	return gpu.subsets(i, remake, tenant).options()
}

// subsets has a row for each set of the GPU's tenants: what fits once they left.
type subsets struct {
	tenants []int
	now     []int // without re-making anything
	made    []int // with it; no less than now
}

// share is what one tenant holds of a GPU.
type share struct {
	held          uint64
	same, compute int
}

func (gpu GPU) subsets(profile int, remake Remake, tenant func(Slot) int) subsets {
	g := gpu.Grid
	var s subsets
	var shares []share
	var all share // who hold the GPU now
	idle := 0
	for _, slot := range gpu.Slots {
		q := g.index(slot.Profile)
		mine := share{held: mask(slot.Start, slot.Size), compute: g.computeOf(slot.Profile)}
		if q == profile {
			mine.same = 1
		}
		if !slot.Held {
			idle += mine.same
			continue
		}
		all = all.with(mine)
		if t := tenant(slot); t >= 0 {
			k := slices.Index(s.tenants, t)
			if k < 0 && len(s.tenants) < maxTenants {
				k = len(s.tenants)
				s.tenants, shares = append(s.tenants, t), append(shares, share{})
			}
			if k >= 0 {
				shares[k] = shares[k].with(mine)
			}
		}
	}
	stay := make([]share, 1<<len(shares)) // by who leaves
	s.now, s.made = make([]int, len(stay)), make([]int, len(stay))
	stay[0] = all
	for set := range stay {
		if set > 0 {
			k := bits.TrailingZeros(uint(set))
			stay[set] = stay[set&(set-1)].without(shares[k])
		}
		st := state(stay[set])
		s.now[set] = idle + all.same - st.same
		s.made[set] = s.now[set]
		if remake == Single || st.held == 0 {
			_, room := g.fit(profile, st)
			s.made[set] = max(s.now[set], room)
		}
	}
	return s
}

func (a share) with(b share) share {
	return share{a.held | b.held, a.same + b.same, a.compute + b.compute}
}

func (a share) without(b share) share {
	return share{a.held &^ b.held, a.same - b.same, a.compute - b.compute}
}

func (s subsets) options() []Option {
	var out []Option
	for set := range s.now {
		before := 0 // the most with one of them staying; more of them staying is never more
		for rest := set; rest != 0; rest &= rest - 1 {
			before = max(before, s.made[set&^(rest&-rest)])
		}
		if s.now[set] > before {
			out = append(out, Option{Fits: s.now[set], Leave: s.leave(set)})
		}
		if s.made[set] > max(before, s.now[set]) {
			out = append(out, Option{Fits: s.made[set], Remade: true, Leave: s.leave(set)})
		}
	}
	return out
}

func (s subsets) leave(set int) []int {
	var out []int
	for rest := uint(set); rest != 0; rest &= rest - 1 {
		out = append(out, s.tenants[bits.TrailingZeros(rest)])
	}
	slices.Sort(out)
	return out
}

// Reconfigure is the option that a named config of a node is: layouts by GPU
// index, GPUs without one keep theirs. GPUs whose counts differ are re-made
// whole, so all who hold them leave. False when one of those cannot leave, a
// layout cannot exist, or a sick GPU would have to be re-made.
func Reconfigure(gpus []GPU, layouts map[int]Layout, profile string, tenant func(Slot) int) (Option, bool) {
	var o Option
	for _, g := range gpus {
		i := g.Grid.index(profile)
		if layout, ok := layouts[g.Index]; ok && !maps.Equal(layout, g.Layout()) {
			placed, ok := g.Grid.Place(layout)
			if !ok || g.Sick {
				return Option{}, false
			}
			o.Remade = true
			for _, s := range placed {
				if i >= 0 && s.Profile == g.Grid.profiles[i].Name {
					o.Fits++
				}
			}
			for _, s := range g.Slots {
				if !s.Held {
					continue
				}
				t := tenant(s)
				if t < 0 {
					return Option{}, false
				}
				o.Leave = append(o.Leave, t)
			}
		} else if i >= 0 {
			o.Fits += g.Fit(profile).Idle
		}
	}
	slices.Sort(o.Leave)
	o.Leave = slices.Compact(o.Leave)
	return o, true
}
