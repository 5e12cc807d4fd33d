package placement

import "slices"

// Plan says how to have more instances of a profile at the least cost.
type Plan struct {
	Asked int
	// Fits is how many there can be: Asked, or the most there is.
	Fits  int
	Moves []Move // by place; places that give idle instances alone are not in it
	Leave []int  // tenants, rising
	Cost  Cost
	Proof Proof
}

// Move is an option that is taken, by its index in the place.
type Move struct{ Place, Option int }

// Proof lets a reader check that no plan costs less.
type Proof struct {
	// Exact: every other plan was ruled out. Where it is false the plan can be
	// carried out, but one between Bound and its cost was not ruled out.
	Exact bool
	// Bound is the optimum when disruption budgets do not bind and every place may pay its
	// share of a tenant in several, where that is known: no plan costs less. Where it equals the
	// cost, it is the proof.
	Bound Cost
	// RunnerUp bounds the plans that leave at least one of the places alone that
	// this one evicts from (places that share tenants count as one): at the same
	// highest priority none costs less, and one costs as much unless a budget that
	// lets this plan pass forbids it. Nil when there is none, or where Tried is above
	// one.
	RunnerUp *Cost
	// Tried is how many such problems were solved: one, where nothing binds.
	Tried int
	// Work counts the steps that it took.
	Work int
}

// Plan finds the least that must leave for k more instances, or for the most
// there can be. Its slices are valid until the next call.
func (p *Planner) Plan(k int) Plan {
	p.refresh()
	p.out.fit(len(p.tenants), len(p.budgets))
	p.out.keep(p, 0)
	p.best.leaving = p.best.leaving[:0]
	work := p.work()
	p.plan = Plan{Asked: k, Fits: min(max(k, 0), p.survey.free), Moves: p.plan.Moves[:0], Leave: p.plan.Leave[:0], Proof: Proof{Exact: true}}
	if target := min(k, p.survey.most); target > p.survey.free {
		p.ascend(target)
	}
	p.choose()
	p.plan.Proof.Work = p.work() - work
	return p.plan
}

// ascend searches with the lowest ceiling on priorities first: any plan of a lower
// one costs less. Where budgets keep the target out of reach at every ceiling, it
// goes for the most there is.
func (p *Planner) ascend(target int) {
	exact := true
	for tier := p.survey.tier(target); ; tier++ {
		p.search(target, p.survey.priorities[tier])
		exact = exact && p.exact
		if p.best.fits < target && tier+1 < len(p.survey.priorities) {
			continue
		}
		if p.best.fits <= p.survey.free {
			p.best.leaving = p.best.leaving[:0]
			break
		}
		if first := p.survey.tier(p.best.fits); p.best.fits < target && first < tier {
			target, tier = p.best.fits, first-1
			continue
		}
		p.plan.Fits = p.best.fits
		p.prove(p.survey.priorities[tier])
		break
	}
	p.plan.Proof.Exact = exact
}

func (p *Planner) prove(ceiling int64) {
	proof := &p.plan.Proof
	proof.Tried = p.tried
	for _, t := range p.best.leaving {
		p.plan.Leave = append(p.plan.Leave, int(t))
		if p.plan.Cost.Number++; p.plan.Cost.Number == 1 || p.tenants[t].Priority > p.plan.Cost.Highest {
			p.plan.Cost.Highest = p.tenants[t].Priority
		}
	}
	slices.Sort(p.plan.Leave)
	p.plan.Cost.Sum, p.plan.Cost.Lost = p.best.price.sum, p.best.price.lost
	if p.floorFits == p.plan.Fits { // else it is the price of more instances
		proof.Bound = p.floor.cost(ceiling)
	}
	if p.tried == 1 && p.exact {
		if price, ok := p.nextBest(p.plan.Fits - p.base); ok {
			p.runnerUp = price.cost(ceiling)
			proof.RunnerUp = &p.runnerUp
		}
	}
}

// cost is a price as a Cost. A number that shares left broken is rounded up: there
// are only whole tenants, and then what is lost says nothing.
func (a price) cost(highest int64) Cost {
	c := Cost{Highest: highest, Sum: a.sum, Number: int(a.number / whole), Lost: a.lost}
	if a.number%whole > 0 {
		c.Number, c.Lost = c.Number+1, 0
	}
	return c
}

func (p *Planner) work() int {
	work := p.outer.work + p.inner.work
	for i := range p.heaps {
		work += p.heaps[i].work
	}
	return work
}

// choose takes the options that those who leave make possible: no more places are
// re-made than are needed.
func (p *Planner) choose() {
	p.out.keep(p, 0)
	for _, t := range p.plan.Leave {
		p.out.add(p, int32(t))
	}
	need := p.plan.Fits
	spare := p.survey.idle
	touched := p.scratch.units[:0]
	for _, t := range p.out.list {
		p.eachSeat(t, func(place int32) { touched = append(touched, place) })
	}
	slices.Sort(touched)
	touched = slices.Compact(touched)
	p.scratch.units = touched
	for _, place := range touched {
		idle, _ := given(p.places[place])
		spare -= idle
		if at := p.fullest(place, true); at >= 0 {
			need -= p.places[place][at].Fits
			p.plan.Moves = append(p.plan.Moves, Move{int(place), at})
		}
	}
	if need -= spare; need < 0 {
		p.spare(-need)
	}
	for gain := len(p.survey.gains) - 1; gain > 0 && need > 0; gain-- {
		for _, place := range p.survey.gains[gain] {
			if _, found := slices.BinarySearch(touched, place); found {
				continue
			}
			p.plan.Moves = append(p.plan.Moves, Move{int(place), remade(p.places[place])})
			if need -= gain; need <= 0 {
				break
			}
		}
	}
	slices.SortFunc(p.plan.Moves, func(a, b Move) int { return a.Place - b.Place })
	p.out.keep(p, 0)
}

// spare takes options that re-make nothing, or none, where surplus instances
// allow it.
func (p *Planner) spare(surplus int) {
	for i := range p.plan.Moves {
		m := &p.plan.Moves[i]
		options := p.places[m.Place]
		if !options[m.Option].Remade {
			continue
		}
		fewer, at := options[m.Option].Fits, p.fullest(int32(m.Place), false)
		if at >= 0 {
			fewer -= options[at].Fits
		}
		if fewer <= surplus {
			surplus -= fewer
			m.Option = at
		}
	}
	p.plan.Moves = slices.DeleteFunc(p.plan.Moves, func(m Move) bool { return m.Option < 0 })
}

// fullest is the option of a place with the most instances once p.out have left, -1
// where there is none; of equals the first, which re-makes nothing.
func (p *Planner) fullest(place int32, remade bool) int {
	found, fits := -1, 0
	for i := range p.places[place] {
		if o := &p.places[place][i]; o.Fits > fits && (remade || !o.Remade) && p.out.cover(o.Leave) {
			found, fits = i, o.Fits
		}
	}
	return found
}

// remade is the option that re-makes a place with nobody leaving.
func remade(options []Option) int {
	found, fits := -1, 0
	for i, o := range options {
		if len(o.Leave) == 0 && o.Fits > fits {
			found, fits = i, o.Fits
		}
	}
	return found
}
