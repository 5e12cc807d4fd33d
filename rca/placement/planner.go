package placement

import (
	"cmp"
	"math"
	"slices"
)

// Problem is a choice of one option in each of many places.
type Problem struct {
	Tenants []Tenant
	Budgets []int // how many of the pods it guards a disruption budget lets go
	Places  [][]Option
}

// Planner finds the least disruption that makes more instances fit. It keeps
// what each place would cost: an Update is worked in at the next Plan. It is for
// one goroutine.
type Planner struct {
	tenants []Tenant
	budgets []int
	places  [][]Option
	prices  []price // by tenant
	survey  survey
	limits  limits

	// The book: what each place costs while tenants stand as they do.
	ceiling int64 // a tenant of a higher priority stays
	forced  []stand
	stands  []stand
	left    []int     // of the budgets, once those who must leave have left
	homes   []int32   // tenant → the one place it could leave, or nowhere, or several
	seats   []int32   // tenant → how many places it could leave
	last    []int32   // tenant → the last of them
	charges []price   // tenant → what a place pays for it
	guarded [][]int32 // budget → tenants
	units   []unit
	unitOf  []int32
	base    int // instances with nobody else leaving
	extra   int // the most beyond that
	heaps   []heap
	dirty   []int32
	stale   bool

	sits    []sit // of tenants who are in several places, by tenant
	split   bool  // some unit was too large, so that its places pay shares
	scratch scratch

	// The search.
	dims           dims
	outer, inner   sack
	out            leavers
	fits           int
	bound, relaxed price // with and without budgets told apart
	floor          price // relaxed of the whole problem
	relaxedFits    int
	floorFits      int
	best           best
	exact          bool
	tried, most    int // problems solved
	until          int // work

	plan     Plan
	runnerUp Cost
}

// limits are what is worked out in one go. Beyond them each place pays a share of
// a tenant in several places, and the planner branches.
type limits struct {
	shared int // tenants that several places have in common
	uses   int // combinations of how much of each budget is used
}

// maxSteps bounds the steps of one go, maxWork those of a search: no problem takes
// longer, at worst the plan is not proved.
const (
	maxSteps = 1 << 21
	maxWork  = 1 << 25
)

// stand is what is decided about a tenant.
type stand uint8

const (
	open stand = iota
	leaves
	stays
)

// NewPlanner takes the problem over.
func NewPlanner(p Problem) *Planner {
	pl := &Planner{budgets: p.Budgets, places: p.Places, stale: true, ceiling: math.MaxInt64, limits: limits{shared: 10, uses: 128}}
	pl.guarded = make([][]int32, len(p.Budgets))
	for _, t := range p.Tenants {
		pl.AddTenant(t)
	}
	return pl
}

// AddTenant returns the number of a new tenant, for options to come.
func (p *Planner) AddTenant(t Tenant) int {
	p.tenants = append(p.tenants, t)
	p.prices = append(p.prices, priceOf(t))
	p.forced = append(p.forced, open)
	p.charges = append(p.charges, priceOf(t))
	p.stands = append(p.stands, p.standOf(len(p.tenants)-1))
	for _, g := range t.Guards {
		p.guarded[g.Budget] = append(p.guarded[g.Budget], int32(len(p.tenants)-1))
	}
	p.homes, p.seats, p.last = append(p.homes, nowhere), append(p.seats, 0), append(p.last, nowhere)
	return len(p.tenants) - 1
}

// Update replaces the options of a place: O(its options), unless a tenant in it
// is in several places.
func (p *Planner) Update(place int, options []Option) {
	old := p.places[place]
	p.places[place] = options
	p.stale = p.stale || !p.private(place, old) || !p.private(place, options) || !p.survey.knows(p, options)
	if p.stale {
		return
	}
	p.settle(old, nowhere, 0)
	p.settle(options, int32(place), 1)
	p.survey.add(p, place, old, -1)
	p.survey.add(p, place, options, 1)
	p.dirty = append(p.dirty, int32(place))
}

// The homes of a tenant who is not in exactly one place.
const (
	nowhere = -1
	several = -2
)

// private says whether nobody in the options is in another place too.
func (p *Planner) private(place int, options []Option) bool {
	for i := range options {
		for _, t := range options[i].Leave {
			if home := p.homes[t]; home != nowhere && home != int32(place) {
				return false
			}
		}
	}
	return true
}

func (p *Planner) settle(options []Option, home, seats int32) {
	for i := range options {
		for _, t := range options[i].Leave {
			p.homes[t], p.seats[t] = home, seats
		}
	}
}

// refresh works updates in.
func (p *Planner) refresh() {
	if p.stale {
		p.survey.make(p)
		p.rebuild()
	}
	p.dims.reset(p.limits.uses)
	for _, place := range p.dirty {
		p.reprice(p.unitOf[place])
	}
	p.dirty = p.dirty[:0]
}

func (p *Planner) standOf(t int) stand {
	tenant := &p.tenants[t]
	switch {
	case tenant.Stays || p.forced[t] == stays:
		return stays
	case p.forced[t] == leaves:
		return leaves
	case tenant.Priority > p.ceiling:
		return stays
	}
	for _, g := range tenant.Guards {
		if left := p.budgets[g.Budget]; g.Pods > left || len(p.left) > 0 && g.Pods > p.left[g.Budget] {
			return stays
		}
	}
	return open
}

// rebuild makes the book from the start: O(places). False where those who must leave break
// a budget.
func (p *Planner) rebuild() bool {
	p.left = append(p.left[:0], p.budgets...)
	for t, f := range p.forced {
		if f == leaves {
			for _, g := range p.tenants[t].Guards {
				if p.left[g.Budget] -= g.Pods; p.left[g.Budget] < 0 {
					return false
				}
			}
		}
	}
	for t := range p.tenants {
		p.stands[t] = p.standOf(t)
		p.homes[t], p.seats[t], p.last[t] = nowhere, 0, nowhere
	}
	for place, options := range p.places {
		for i := range options {
			for _, t := range options[i].Leave {
				if p.last[t] == int32(place) {
					continue
				}
				p.last[t] = int32(place)
				if p.seats[t]++; p.seats[t] == 1 {
					p.homes[t] = int32(place)
				} else {
					p.homes[t] = several
				}
			}
		}
	}
	p.sit()
	p.dims.reset(p.limits.uses)
	p.group()
	p.base, p.extra = 0, 0
	for i := range p.heaps {
		p.heaps[i].reset(len(p.units))
	}
	for u := range p.units {
		p.row(&p.units[u])
		p.base += p.units[u].free
		p.extra += len(p.units[u].levels)
		for len(p.heaps) < len(p.units[u].levels) {
			p.heaps = append(p.heaps, heap{})
			p.heaps[len(p.heaps)-1].reset(len(p.units))
		}
		for l := range p.units[u].levels {
			p.heaps[l].add(int32(u))
		}
	}
	for l := range p.heaps {
		p.heaps[l].order(p.units, l)
	}
	p.dirty, p.stale = p.dirty[:0], false
	return true
}

// sit lists the places of tenants who are in several.
func (p *Planner) sit() {
	p.sits = p.sits[:0]
	for t := range p.last {
		p.last[t] = nowhere
	}
	for place, options := range p.places {
		for i := range options {
			for _, t := range options[i].Leave {
				if p.homes[t] == several && p.last[t] != int32(place) {
					p.last[t] = int32(place)
					p.sits = append(p.sits, sit{int32(t), int32(place)})
				}
			}
		}
	}
	slices.SortStableFunc(p.sits, func(a, b sit) int { return cmp.Compare(a.tenant, b.tenant) })
}

// reprice makes the row of one unit again: O(its options + log places).
func (p *Planner) reprice(u int32) {
	unit := &p.units[u]
	p.base -= unit.free
	p.extra -= len(unit.levels)
	before := len(unit.levels)
	p.row(unit)
	p.base += unit.free
	p.extra += len(unit.levels)
	for len(p.heaps) < len(unit.levels) {
		p.heaps = append(p.heaps, heap{})
		p.heaps[len(p.heaps)-1].reset(len(p.units))
	}
	for l := range max(before, len(unit.levels)) {
		p.heaps[l].update(p.units, l, u, l < len(unit.levels))
	}
}
