package placement_test

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/unpend/unpend/nodeprobe"
)

// judge decides by trying everything, from a model's profiles alone. It is what
// the engine is held against, so it knows nothing of the engine.
type judge struct {
	profiles []nodeprobe.Profile
	compute  int
}

// at is an instance of a profile (by index) at a start.
type at struct{ profile, start int }

func newJudge(profiles []nodeprobe.Profile) judge {
	j := judge{profiles: profiles}
	for _, p := range profiles {
		j.compute = max(j.compute, p.ComputeSlices)
	}
	return j
}

// legal applies the rule of the MIG user guide to a whole set.
func (j judge) legal(set []at) bool {
	compute := 0
	for i, a := range set {
		p := j.profiles[a.profile]
		same := 0
		for k, b := range set {
			if b.profile == a.profile {
				same++
			}
			if q := j.profiles[b.profile]; i != k && a.start < b.start+q.MemorySlices && b.start < a.start+p.MemorySlices {
				return false
			}
		}
		if same > p.Max || !slices.Contains(p.Starts, a.start) {
			return false
		}
		compute += p.ComputeSlices
	}
	return compute <= j.compute
}

// sets are all legal sets without the empty one.
func (j judge) sets() [][]at {
	var all []at
	for i, p := range j.profiles {
		for _, s := range p.Starts {
			all = append(all, at{i, s})
		}
	}
	var out [][]at
	var walk func(from int, set []at)
	walk = func(from int, set []at) {
		for k := from; k < len(all); k++ {
			if next := append(slices.Clone(set), all[k]); j.legal(next) {
				out = append(out, next)
				walk(k+1, next)
			}
		}
	}
	walk(0, nil)
	return out
}

// more is how many more instances of a profile could join the set at once, and
// the starts at which one could.
func (j judge) more(set []at, profile int) (most int, starts []int) {
	var walk func(set []at, from, n int)
	walk = func(set []at, from, n int) {
		most = max(most, n)
		for k, s := range j.profiles[profile].Starts[from:] {
			if next := append(slices.Clone(set), at{profile, s}); j.legal(next) {
				if n == 0 {
					starts = append(starts, s)
				}
				walk(next, from+k+1, n+1)
			}
		}
	}
	walk(set, 0, 0)
	return most, starts
}

// cheapest tries every subset of the set's instances as victims: the least cost,
// then the least number, after which n more instances of the profile fit. A cost
// below zero means that the instance may not leave.
func (j judge) cheapest(set []at, costs []int64, profile, n int) (cost int64, count int, ok bool) {
	for victims := range 1 << len(set) {
		var stay []at
		sum, may := int64(0), true
		for k := range set {
			if victims>>k&1 == 0 {
				stay = append(stay, set[k])
				continue
			}
			may = may && costs[k] >= 0
			sum += costs[k]
		}
		number := bits.OnesCount(uint(victims))
		if !may || ok && (sum > cost || sum == cost && number >= count) {
			continue
		}
		if most, _ := j.more(stay, profile); most >= n {
			cost, count, ok = sum, number, true
		}
	}
	return cost, count, ok
}

// counts are the figures by which a model's geometry is known.
type counts struct{ sets, maximal, layouts, maximalLayouts int }

func (j judge) counts() counts {
	layouts, most := map[string]bool{}, map[string]bool{}
	var c counts
	for _, set := range j.sets() {
		key := make([]int, len(j.profiles))
		for _, a := range set {
			key[a.profile]++
		}
		isMost := true
		for i := range j.profiles {
			more, _ := j.more(set, i)
			isMost = isMost && more == 0
		}
		c.sets++
		layouts[fmt.Sprint(key)] = true
		if isMost {
			c.maximal++
			most[fmt.Sprint(key)] = true
		}
	}
	c.layouts, c.maximalLayouts = len(layouts), len(most)
	return c
}
