package placement

import "slices"

// survey is how many instances can be had by the highest priority that has to
// leave for them.
type survey struct {
	free       int // with nobody leaving
	idle       int // of them without re-making anything
	most       int
	priorities []int64 // rising
	more       []int   // by priority
	// What re-making the place would add to its idle instances, nobody leaving: the
	// places by how many, and where each is among them.
	gains [][]int32
	pos   []int32
}

func (s *survey) make(p *Planner) {
	seen := map[int64]bool{}
	s.priorities = s.priorities[:0]
	for i := range p.tenants {
		if prio := p.tenants[i].Priority; !seen[prio] && !p.fixed(i) {
			seen[prio] = true
			s.priorities = append(s.priorities, prio)
		}
	}
	slices.Sort(s.priorities)
	s.more = make([]int, len(s.priorities))
	s.free, s.idle, s.most = 0, 0, 0
	for g := range s.gains {
		s.gains[g] = s.gains[g][:0]
	}
	s.pos = slices.Grow(s.pos[:0], len(p.places))[:len(p.places)]
	for place, options := range p.places {
		s.add(p, place, options, 1)
	}
}

// fixed says whether the tenant can never leave.
func (p *Planner) fixed(t int) bool {
	tenant := &p.tenants[t]
	if tenant.Stays {
		return true
	}
	for _, g := range tenant.Guards {
		if g.Pods > p.budgets[g.Budget] {
			return true
		}
	}
	return false
}

func (s *survey) knows(p *Planner, options []Option) bool {
	for i := range options {
		for _, t := range options[i].Leave {
			if _, ok := slices.BinarySearch(s.priorities, p.tenants[t].Priority); !ok && !p.fixed(t) {
				return false
			}
		}
	}
	return true
}

// add counts what a place can give, or takes it back.
func (s *survey) add(p *Planner, place int, options []Option, sign int) {
	idle, free := given(options)
	s.idle += sign * idle
	s.gain(int32(place), free-idle, sign > 0)
	reached := 0
	for tier := -1; tier < len(s.priorities); tier++ {
		most := reached
		for i := range options {
			if o := &options[i]; o.Fits > most && s.tierOf(p, o) <= tier {
				most = o.Fits
			}
		}
		if tier < 0 {
			s.free += sign * most
		} else {
			s.more[tier] += sign * (most - reached)
		}
		reached = most
	}
	s.most += sign * reached
}

// given is what a place gives with nobody leaving: as it is, and re-made.
func given(options []Option) (idle, free int) {
	for i := range options {
		if o := &options[i]; len(o.Leave) == 0 {
			if free = max(free, o.Fits); !o.Remade {
				idle = max(idle, o.Fits)
			}
		}
	}
	return idle, free
}

func (s *survey) gain(place int32, gain int, in bool) {
	for len(s.gains) <= gain {
		s.gains = append(s.gains, nil)
	}
	list := s.gains[gain]
	switch {
	case gain == 0:
	case in:
		s.pos[place] = int32(len(list))
		s.gains[gain] = append(list, place)
	default:
		last := list[len(list)-1]
		list[s.pos[place]], s.pos[last] = last, s.pos[place]
		s.gains[gain] = list[:len(list)-1]
	}
}

// tier is the index of the lowest priority up to which somebody has to leave for
// so many instances.
func (s *survey) tier(target int) int {
	reach := s.free
	for tier, more := range s.more {
		if reach += more; reach >= target {
			return tier
		}
	}
	return len(s.more) - 1
}

// tierOf is the index of the highest priority that leaves for an option, -1 when
// nobody does.
func (s *survey) tierOf(p *Planner, o *Option) int {
	tier := -1
	for _, t := range o.Leave {
		if p.fixed(t) {
			return len(s.priorities)
		}
		at, _ := slices.BinarySearch(s.priorities, p.tenants[t].Priority)
		tier = max(tier, at)
	}
	return tier
}
