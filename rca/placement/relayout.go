package placement

import (
	"cmp"
	"slices"
)

// Relayouts lists the layouts with at least n instances of the profile for when
// everybody leaves the GPU (mig-manager re-makes it whole), best first: those
// that give the holders of now most of their profiles back beside the n, then
// those that keep most idle instances of now, then those that leave the fewest
// slices without an instance. The layout of now is not among them: mig-manager
// skips a GPU whose counts are the wanted ones. They are the grid's own: read
// only.
func (gpu GPU) Relayouts(profile string, n int) []Layout {
	g := gpu.Grid
	i := g.index(profile)
	if i < 0 || gpu.Sick {
		return nil
	}
	held, now := make([]int, len(g.profiles)), make([]int, len(g.profiles))
	for k := range gpu.Slots {
		if q := g.index(gpu.Slots[k].Profile); q >= 0 {
			now[q]++
			if gpu.Slots[k].Held {
				held[q]++
			}
		}
	}
	type ranked struct {
		*option
		back, kept int
	}
	var found []ranked
	options := g.layouts()
	for k := range options {
		o := ranked{option: &options[k]}
		if o.counts[i] < n || slices.Equal(o.counts, now) {
			continue
		}
		for q, c := range o.counts {
			if q == i {
				c -= n
			}
			// Of equal back, more of now means more idle ones kept.
			o.back += min(c, held[q])
			o.kept += min(c, now[q])
		}
		found = append(found, o)
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.back, a.back), cmp.Compare(b.kept, a.kept), cmp.Compare(b.memory, a.memory))
	})
	out := make([]Layout, len(found))
	for k := range found {
		out[k] = found[k].layout
	}
	return out
}

// Held says whether anybody, or nobody knows who, holds an instance of the GPU.
func (gpu GPU) Held() bool {
	return slices.ContainsFunc(gpu.Slots, func(s Slot) bool { return s.Held })
}
