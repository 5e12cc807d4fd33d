package placement

import (
	"cmp"
	"slices"
)

// leavers are the tenants who leave by a plan, and how many pods of each budget
// go with them.
type leavers struct {
	list  []int32
	in    []bool // by tenant
	spent []int  // by budget
}

func (s *leavers) fit(tenants, budgets int) {
	for len(s.in) < tenants {
		s.in = append(s.in, false)
	}
	for len(s.spent) < budgets {
		s.spent = append(s.spent, 0)
	}
}

func (s *leavers) add(p *Planner, t int32) {
	if s.in[t] {
		return
	}
	s.in[t] = true
	s.list = append(s.list, t)
	for _, g := range p.tenants[t].Guards {
		s.spent[g.Budget] += g.Pods
	}
}

// keep takes all but the first n back.
func (s *leavers) keep(p *Planner, n int) {
	for _, t := range s.list[n:] {
		s.in[t] = false
		for _, g := range p.tenants[t].Guards {
			s.spent[g.Budget] -= g.Pods
		}
	}
	s.list = s.list[:n]
}

// cover says whether all the tenants are among them.
func (s *leavers) cover(tenants []int) bool {
	for _, t := range tenants {
		if !s.in[t] {
			return false
		}
	}
	return true
}

// violated is a budget of which more leaves than it lets go, -1 where there is
// none.
func (s *leavers) violated(p *Planner) int { return s.violatedBy(p, 0) }

// violatedBy looks at the budgets of all but the first n alone.
func (s *leavers) violatedBy(p *Planner, n int) int {
	for _, t := range s.list[n:] {
		for _, g := range p.tenants[t].Guards {
			if s.spent[g.Budget] > p.left[g.Budget] {
				return g.Budget
			}
		}
	}
	return -1
}

// unfold adds those who leave for a choice to p.out.
func (p *Planner) unfold(c choice) {
	u := &p.units[c.unit]
	if len(u.shared) == 0 {
		p.match(u.places[0], c.label)
		return
	}
	free := 0
	p.stand(u.shared, stays)
	for _, place := range u.places {
		f, _ := p.reach(place)
		free += f
	}
	for set := range 1 << len(u.shared) {
		gained, ok := p.together(u, set, true)
		if !ok {
			continue
		}
		state := (int(c.fits)-gained+free)*p.inner.uses + int(c.use)
		if state < 0 || state >= len(p.inner.best) || p.inner.best[state] != c.price {
			continue
		}
		for i, t := range u.shared {
			if set>>i&1 > 0 {
				p.out.add(p, t)
			}
		}
		p.inner.each(state, func(item int, l label) { p.match(u.places[item], l) })
		break
	}
	p.stand(u.shared, open)
}

// match finds the option of a place behind a label, and adds who leaves for it.
func (p *Planner) match(place int32, l label) {
	free, _ := p.reach(place)
	for i := range p.places[place] {
		o := &p.places[place][i]
		if o.Fits-free != int(l.fits) {
			continue
		}
		cost, ok := p.charge(o.Leave)
		if use, within := p.use(o.Leave); ok && within && cost == l.price && use == int(l.use) {
			for _, t := range o.Leave {
				if p.stands[t] == open {
					p.out.add(p, int32(t))
				}
			}
			return
		}
	}
}

// sit is a seat of a tenant who has several.
type sit struct{ tenant, place int32 }

// eachSeat tells the places that a tenant could leave, rising.
func (p *Planner) eachSeat(t int32, visit func(place int32)) {
	if home := p.homes[t]; home != several {
		if home != nowhere {
			visit(home)
		}
		return
	}
	at, _ := slices.BinarySearchFunc(p.sits, t, func(s sit, t int32) int { return cmp.Compare(s.tenant, t) })
	for ; at < len(p.sits) && p.sits[at].tenant == t; at++ {
		visit(p.sits[at].place)
	}
}
