package placement

// best is the cheapest plan that a search has found.
type best struct {
	found   bool
	fits    int
	price   price
	leaving []int32
}

// search finds the least that must leave for target instances while nobody above
// the ceiling does, or for the most there can be: branch and bound over the
// tenants who couple places. Where nobody couples them it solves one problem.
func (p *Planner) search(target int, ceiling int64) {
	if p.stale || p.ceiling != ceiling {
		p.ceiling = ceiling
		p.rebuild()
	}
	p.dims.reset(p.limits.uses)
	p.best.found, p.exact, p.tried = false, true, 0
	p.most = min(max(maxSteps/(len(p.places)+1), 64), 4096)
	p.until = p.work() + maxWork
	p.descend(target, price{})
}

// descend solves the problem as far as it is decided, and branches where what it
// finds is not yet a plan. sunk is the price of those who must leave.
func (p *Planner) descend(target int, sunk price) {
	p.tried++
	blocked := p.solve(target)
	fits, bound := p.fits, p.bound.plus(sunk)
	if p.tried == 1 {
		p.floor, p.floorFits = p.relaxed, p.relaxedFits
	}
	if blocked < 0 {
		p.note(sunk)
	}
	if p.tried == 1 && blocked >= 0 {
		t := p.coupled(blocked)
		p.fallBack(target)
		p.decide(target, t, sunk, fits, bound)
		return
	}
	p.decide(target, p.coupled(blocked), sunk, fits, bound)
}

// decide branches on a tenant, unless no plan below can beat the best found.
func (p *Planner) decide(target int, t int32, sunk price, fits int, bound price) {
	for _, s := range [...]stand{leaves, stays} {
		if t < 0 || p.best.found && (p.best.fits > fits || p.best.fits == fits && !bound.less(p.best.price)) {
			return
		}
		if p.tried >= p.most || p.work() > p.until {
			p.exact = false
			return
		}
		p.forced[t] = s
		if p.rebuild() {
			below := sunk
			if s == leaves {
				below = below.plus(p.prices[t])
			}
			p.descend(target, below)
		}
		p.forced[t], p.stale = open, true
	}
}

// solve relaxes the problem, telling more budgets apart as they bind. It leaves
// the solution in p.fits, p.bound and p.out and returns a budget that it breaks,
// -1 for none.
func (p *Planner) solve(target int) int {
	for first := true; ; first = false {
		reached, bound := p.relax(target - p.base)
		p.fits, p.bound = min(target, p.base+reached), bound
		if first {
			p.relaxed, p.relaxedFits = bound, p.fits
		}
		p.out.keep(p, 0)
		for _, c := range p.scratch.chosen {
			p.unfold(c)
		}
		blocked := p.out.violated(p)
		if blocked < 0 || !p.dims.activate(blocked, p.left[blocked]) {
			return blocked
		}
	}
}

// note keeps what was found if it is the best so far. Its price is what its
// tenants cost in full, not by shares.
func (p *Planner) note(sunk price) {
	for _, t := range p.out.list {
		sunk = sunk.plus(p.prices[t])
	}
	if p.best.found && (p.fits < p.best.fits || p.fits == p.best.fits && !sunk.less(p.best.price)) {
		return
	}
	p.best.found, p.best.fits, p.best.price = true, p.fits, sunk
	p.best.leaving = append(p.best.leaving[:0], p.out.list...)
	if p.tried == 1 {
		return // nobody is forced
	}
	for t, s := range p.forced {
		if s == leaves {
			p.best.leaving = append(p.best.leaving, int32(t))
		}
	}
}

// coupled is a tenant to decide about: one whose budget is broken, else one whose
// price was paid in shares only; -1 where there is none.
func (p *Planner) coupled(blocked int) int32 {
	found, most := int32(-1), 0
	for _, t := range p.out.list {
		weight := 0
		if blocked >= 0 {
			weight = p.pods(int(t), blocked)
		} else if p.charges[t] != p.prices[t] {
			weight = int(p.seats[t])
		}
		if weight > most {
			found, most = t, weight
		}
	}
	return found
}

// fallBack finds some plan that breaks no budget, for the search to beat: of those
// whose budget would be broken, only so many may leave as it allows.
func (p *Planner) fallBack(target int) {
	var held []int32
	for blocked := p.out.violated(p); blocked >= 0; blocked = p.solve(target) {
		left := p.left[blocked]
		for _, t := range p.guarded[blocked] {
			if pods := p.pods(int(t), blocked); p.out.in[t] && pods <= left {
				left -= pods
			} else if p.forced[t] == open {
				p.forced[t] = stays
				held = append(held, t)
			}
		}
		p.rebuild()
	}
	p.note(price{})
	for _, t := range held {
		p.forced[t] = open
	}
	p.stale = true
}

// nextBest is the least price at which one of the units that are chosen is left
// alone; false where that leaves too few. It must follow an exact relax at once.
func (p *Planner) nextBest(want int) (price, bool) {
	s := &p.scratch
	if len(p.outer.ends) == 0 || want > p.outer.want {
		return never, false
	}
	p.outer.trace, p.outer.spent = false, false
	column := p.column(0)
	for state := range column {
		column[state] = never
	}
	column[0] = price{}
	s.items = s.items[:0]
	for item, u := range s.units {
		if n := len(s.chosen) - 1 - len(s.items); n >= 0 && s.chosen[n].unit == u { // they are in falling order
			s.items = append(s.items, item)
			continue
		}
		p.outer.weigh(column, p.outer.of(item), 0)
	}
	least := p.without(s.items, 0, want)
	return least, least.possible()
}

// without is the least price with one of the items left out, given the column of
// all others: it halves them, so that each is weighed O(log items) times.
func (p *Planner) without(items []int, depth, want int) price {
	if len(items) == 1 {
		if state := p.outer.least(p.scratch.columns[depth], want); state >= 0 {
			return p.scratch.columns[depth][state]
		}
		return never
	}
	least := never
	half := len(items) / 2
	for _, part := range [...][2][]int{{items[:half], items[half:]}, {items[half:], items[:half]}} {
		column := p.column(depth + 1)
		copy(column, p.scratch.columns[depth])
		for _, item := range part[1] {
			p.outer.weigh(column, p.outer.of(item), 0)
		}
		if price := p.without(part[0], depth+1, want); price.less(least) {
			least = price
		}
	}
	return least
}

func (p *Planner) column(depth int) []price {
	s := &p.scratch
	for len(s.columns) <= depth {
		s.columns = append(s.columns, nil)
	}
	for len(s.columns[depth]) < len(p.outer.best) {
		s.columns[depth] = append(s.columns[depth], never)
	}
	s.columns[depth] = s.columns[depth][:len(p.outer.best)]
	return s.columns[depth]
}
