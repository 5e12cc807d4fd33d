package placement

import (
	"cmp"
	"slices"
)

// maxExact is the number of evicted-for instances up to which a plan is exact;
// beyond, it is put together greedily, and says so.
const maxExact = 1024

// choice is a label taken of a unit.
type choice struct {
	unit int32
	label
}

// scratch is memory that is used again.
type scratch struct {
	members, root, frontier, units []int32
	chosen, ranked                 []choice
	skip                           []bool // by unit
	leaving                        []int
	table, place                   table
	columns                        [][]price
	items                          []int
	guarded                        []int32
}

// relax finds the least price for want instances beyond the free ones, as if no
// budget bound that is not told apart, and shares were all that a tenant in
// several places costs. It returns how many there can be, at most want.
func (p *Planner) relax(want int) (int, price) {
	p.scratch.chosen, p.outer.ends = p.scratch.chosen[:0], p.outer.ends[:0]
	told := p.dims.uses > 1
	switch {
	case want <= 0:
		return 0, price{}
	case !told && want >= p.extra:
		return p.everything()
	case want > maxExact || told && want*p.dims.uses > 8*maxExact:
		p.exact = false
		return p.greedy(want)
	}
	p.candidates(want + 1) // one more than can be used: the proof leaves one out
	p.outer.start(want, &p.dims, price{}, 0, true)
	for _, u := range p.scratch.units {
		p.labels(u)
		p.outer.item()
	}
	for ; want > 0; want-- {
		if state := p.outer.least(p.outer.best, want); state >= 0 {
			p.outer.each(state, func(item int, l label) {
				p.scratch.chosen = append(p.scratch.chosen, choice{p.scratch.units[item], l})
			})
			return want, p.outer.best[state]
		}
	}
	return 0, price{}
}

// labels appends what a unit offers to p.outer.
func (p *Planner) labels(u int32) {
	if p.dims.uses > 1 {
		p.fill(&p.units[u], &p.scratch.table)
		p.outer.labels = p.scratch.table.labels(p.outer.labels)
		return
	}
	levels := p.units[u].levels
	for l, price := range levels {
		if l == len(levels)-1 || price.less(levels[l+1]) {
			p.outer.labels = append(p.outer.labels, label{fits: int32(l + 1), price: price})
		}
	}
}

// everything takes the most of every unit.
func (p *Planner) everything() (int, price) {
	var sum price
	for u := range p.units {
		levels := p.units[u].levels
		if n := len(levels); n > 0 {
			p.scratch.chosen = append(p.scratch.chosen, choice{int32(u), label{fits: int32(n), price: levels[n-1]}})
			sum = sum.plus(levels[n-1])
		}
	}
	return p.extra, sum
}

// candidates are the n cheapest units for each number of instances and each use
// of budgets: a plan takes fewer than n units, so any other could be exchanged
// for one of them. Those that use budgets come last.
func (p *Planner) candidates(n int) {
	s := &p.scratch
	s.units = s.units[:0]
	for len(s.skip) < len(p.units) {
		s.skip = append(s.skip, false)
	}
	guarded := p.guardedUnits()
	for _, u := range guarded {
		s.skip[u] = true
	}
	for level := range p.heaps {
		s.units, s.frontier = p.heaps[level].cheapest(p.units, level, n, s.skip, s.frontier, s.units)
	}
	for _, u := range guarded {
		s.skip[u] = false
	}
	slices.Sort(s.units)
	s.units = slices.Compact(s.units)
	s.ranked = s.ranked[:0]
	for _, u := range guarded {
		p.fill(&p.units[u], &s.table)
		p.outer.labels = s.table.labels(p.outer.labels[:0])
		for _, l := range p.outer.labels {
			s.ranked = append(s.ranked, choice{u, l})
		}
	}
	slices.SortFunc(s.ranked, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.fits, b.fits), cmp.Compare(a.use, b.use), a.price.compare(b.price), cmp.Compare(a.unit, b.unit))
	})
	row, from := 0, len(s.units)
	for i, r := range s.ranked {
		if i > 0 && (r.fits != s.ranked[i-1].fits || r.use != s.ranked[i-1].use) {
			row = 0
		}
		if row++; row <= n {
			s.units = append(s.units, r.unit)
		}
	}
	slices.Sort(s.units[from:])
	s.units = append(s.units[:from], slices.Compact(s.units[from:])...)
}

// guardedUnits are those with tenants whose budgets are told apart.
func (p *Planner) guardedUnits() []int32 {
	if len(p.dims.active) == 0 {
		return nil
	}
	out := p.scratch.guarded[:0]
	for _, dim := range p.dims.active {
		for _, t := range p.guarded[dim.budget] {
			if p.stands[t] == open {
				p.eachSeat(t, func(place int32) { out = append(out, p.unitOf[place]) })
			}
		}
	}
	slices.Sort(out)
	p.scratch.guarded = out
	return slices.Compact(out)
}

// greedy takes what is cheapest by the instance, as far as budgets allow.
func (p *Planner) greedy(want int) (int, price) {
	p.dims.reset(p.limits.uses) // it looks at all budgets by itself
	s := &p.scratch
	s.ranked = s.ranked[:0]
	for u := range p.units {
		var best choice
		for l, price := range p.units[u].levels {
			last := l == len(p.units[u].levels)-1
			if c := (choice{int32(u), label{fits: int32(l + 1), price: price}}); (last || price.less(p.units[u].levels[l+1])) && (best.fits == 0 || byRatio(c, best) < 0) {
				best = c
			}
		}
		if best.fits > 0 {
			s.ranked = append(s.ranked, best)
		}
	}
	slices.SortFunc(s.ranked, byRatio)
	reached, sum := 0, price{}
	p.out.keep(p, 0)
	for _, c := range s.ranked {
		if reached >= want {
			break
		}
		before := len(p.out.list)
		if p.unfold(c); p.out.violatedBy(p, before) >= 0 {
			p.out.keep(p, before)
			continue
		}
		s.chosen = append(s.chosen, c)
		reached, sum = reached+int(c.fits), sum.plus(c.price)
	}
	return min(reached, want), sum
}

// byRatio orders by the price of one instance.
func byRatio(a, b choice) int {
	m, n := int64(b.fits), int64(a.fits)
	return cmp.Or(cmp.Compare(a.price.sum*m, b.price.sum*n), cmp.Compare(a.price.number*m, b.price.number*n),
		cmp.Compare(a.price.lost*m, b.price.lost*n), cmp.Compare(a.unit, b.unit))
}
