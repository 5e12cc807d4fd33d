package placement

import "slices"

// unit is a place, or several that share tenants: what one of them decides about
// a gang, it decides for all.
type unit struct {
	places []int32 // rising
	shared []int32 // tenants in more than one of them, while they are open
	free   int     // instances without any open tenant leaving
	levels []price // what 1, 2, ... more cost at least; never falling
}

// group makes units of the places.
func (p *Planner) group() {
	root := p.connect()
	members := p.scratch.members[:0]
	for place := range p.places {
		members = append(members, int32(place))
	}
	slices.SortStableFunc(members, func(a, b int32) int { return int(root[a] - root[b]) })
	p.scratch.members = members
	p.charges = append(p.charges[:0], p.prices...)
	p.units, p.unitOf = p.units[:0], slices.Grow(p.unitOf[:0], len(p.places))[:len(p.places)]
	p.split = false
	for from := 0; from < len(members); {
		to := from + 1
		for to < len(members) && root[members[to]] == root[members[from]] {
			to++
		}
		p.join(members[from:to])
		from = to
	}
}

// connect finds the places that share open tenants: the root of each is the
// lowest of them.
func (p *Planner) connect() []int32 {
	root := p.scratch.root[:0]
	for place := range p.places {
		root = append(root, int32(place))
	}
	find := func(a int32) int32 {
		for root[a] != a {
			root[a] = root[root[a]]
			a = root[a]
		}
		return a
	}
	for t := range p.last {
		p.last[t] = nowhere
	}
	for place, options := range p.places {
		for i := range options {
			for _, t := range options[i].Leave {
				if p.stands[t] != open || p.seats[t] < 2 {
					continue
				}
				if p.last[t] != nowhere {
					a, b := find(p.last[t]), find(int32(place))
					root[max(a, b)] = min(a, b)
				}
				p.last[t] = int32(place)
			}
		}
	}
	for place := range root {
		root[place] = find(int32(place))
	}
	p.scratch.root = root
	return root
}

// join makes one unit of places that are connected, or one of each where that
// would take too long.
func (p *Planner) join(places []int32) {
	if len(places) == 1 {
		p.addUnit(places, nil)
		return
	}
	var shared []int32
	most := 0
	for _, place := range places {
		fits := 0
		for i := range p.places[place] {
			fits = max(fits, p.places[place][i].Fits)
			for _, t := range p.places[place][i].Leave {
				if p.stands[t] == open && p.seats[t] > 1 {
					shared = append(shared, int32(t))
				}
			}
		}
		most += fits
	}
	slices.Sort(shared)
	shared = slices.Compact(shared)
	if len(shared) <= p.limits.shared && most*most<<len(shared) <= maxSteps {
		p.addUnit(places, shared)
		return
	}
	p.split = true
	for _, t := range shared {
		p.charges[t] = p.prices[t].share(int64(p.seats[t]))
	}
	for i := range places {
		p.addUnit(places[i:i+1], nil)
	}
}

func (p *Planner) addUnit(places, shared []int32) {
	for _, place := range places {
		p.unitOf[place] = int32(len(p.units))
	}
	if n := len(p.units); n < cap(p.units) { // keep the levels' memory
		p.units = p.units[:n+1]
		p.units[n].places, p.units[n].shared = places, shared
		return
	}
	p.units = append(p.units, unit{places: places, shared: shared})
}

// row works out what a unit costs.
func (p *Planner) row(u *unit) {
	t := &p.scratch.table
	u.free = p.fill(u, t)
	u.levels = append(u.levels[:0], t.cells[1:]...)
	for l := len(u.levels) - 2; l >= 0; l-- {
		if u.levels[l+1].less(u.levels[l]) {
			u.levels[l] = u.levels[l+1]
		}
	}
}

// fill works out the table of a unit and returns its free instances.
func (p *Planner) fill(u *unit, t *table) int {
	if len(u.shared) == 0 {
		return p.fillPlace(u.places[0], t)
	}
	p.stand(u.shared, leaves)
	most := 0
	for _, place := range u.places {
		free, reach := p.reach(place)
		most += free + reach
	}
	p.stand(u.shared, stays)
	free := 0
	for _, place := range u.places {
		f, _ := p.reach(place)
		free += f
	}
	t.reset(most-free, p.dims.uses)
	for set := range 1 << len(u.shared) {
		gained, ok := p.together(u, set, false)
		if !ok {
			continue
		}
		gained -= free
		for state, price := range p.inner.best {
			if fits := gained + state/p.inner.uses; fits > 0 && price.possible() {
				t.lower(fits, state%p.inner.uses, price)
			}
		}
	}
	p.stand(u.shared, open)
	return free
}

// together weighs the places of a unit in p.inner while a set of the tenants
// that they share leaves; false where they may not. It returns the instances
// that are free then.
func (p *Planner) together(u *unit, set int, trace bool) (free int, ok bool) {
	paid := price{}
	leaving := p.scratch.leaving[:0]
	for i, t := range u.shared {
		if set>>i&1 > 0 {
			paid = paid.plus(p.prices[t])
			leaving = append(leaving, int(t))
		}
	}
	p.scratch.leaving = leaving
	p.stand(u.shared, open)
	use, ok := p.use(leaving)
	if !ok {
		return 0, false
	}
	more := 0
	for i, t := range u.shared {
		p.stands[t] = stays
		if set>>i&1 > 0 {
			p.stands[t] = leaves
		}
	}
	for _, place := range u.places {
		f, reach := p.reach(place)
		free, more = free+f, more+reach
	}
	p.inner.start(more, &p.dims, paid, use, trace)
	for _, place := range u.places {
		p.fillPlace(place, &p.scratch.place)
		p.inner.labels = p.scratch.place.labels(p.inner.labels)
		p.inner.item()
	}
	return free, true
}

func (p *Planner) stand(tenants []int32, s stand) {
	for _, t := range tenants {
		p.stands[t] = s
	}
}

// charge is what an option costs a place; false when somebody stays.
func (p *Planner) charge(leave []int) (price, bool) {
	var sum price
	for _, t := range leave {
		switch p.stands[t] {
		case stays:
			return never, false
		case open:
			sum = sum.plus(p.charges[t])
		}
	}
	return sum, true
}

// reach is how many instances are free in a place, and the most beyond.
func (p *Planner) reach(place int32) (free, more int) {
	options := p.places[place]
	most := 0
	for i := range options {
		if cost, ok := p.charge(options[i].Leave); ok {
			most = max(most, options[i].Fits)
			if cost == (price{}) && p.nobody(options[i].Leave) {
				free = max(free, options[i].Fits)
			}
		}
	}
	return free, most - free
}

// nobody says whether none of the tenants is still open: a share of a tenant may
// have been rounded down to nothing.
func (p *Planner) nobody(leave []int) bool {
	for _, t := range leave {
		if p.stands[t] == open {
			return false
		}
	}
	return true
}

func (p *Planner) fillPlace(place int32, t *table) int {
	free, more := p.reach(place)
	t.reset(more, p.dims.uses)
	options := p.places[place]
	for i := range options {
		cost, ok := p.charge(options[i].Leave)
		if !ok || options[i].Fits <= free {
			continue
		}
		if use, ok := p.use(options[i].Leave); ok {
			t.lower(options[i].Fits-free, use, cost)
		}
	}
	return free
}
