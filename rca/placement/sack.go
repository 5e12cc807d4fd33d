package placement

import "slices"

// label is a number of instances that an item can give, for a price and a use of
// budgets.
type label struct {
	fits, use int32
	price     price
}

// sack is a multiple-choice knapsack: of each item at most one label, at least so
// many instances in all, at the least price, for every number and every use of
// budgets at once.
type sack struct {
	want, uses int
	less       []int16
	best       []price // (number × use) → least price
	labels     []label
	ends       []int // of the items' labels
	picks      []int32
	trace      bool
	spent      bool // some label had a use: until then no other use can be reached
	work       int
}

// start empties the sack but for what has been paid and used already.
func (s *sack) start(want int, d *dims, paid price, use int, trace bool) {
	s.want, s.uses, s.less, s.trace = want, d.uses, d.less, trace
	s.labels, s.ends, s.picks = s.labels[:0], s.ends[:0], s.picks[:0]
	s.best = s.best[:0]
	for range (want + 1) * d.uses {
		s.best = append(s.best, never)
	}
	s.best[use], s.spent = paid, use > 0
}

// item ends an item whose labels have been appended, and weighs it.
func (s *sack) item() {
	s.ends = append(s.ends, len(s.labels))
	at := len(s.picks)
	if s.trace {
		for range s.best {
			s.picks = append(s.picks, 0)
		}
	}
	s.weigh(s.best, s.of(len(s.ends)-1), at)
}

// weigh adds an item to a column. Higher numbers first: what is read has not
// been written for this item, because every label gives something.
func (s *sack) weigh(best []price, labels []label, picks int) {
	for l := range labels {
		s.spent = s.spent || labels[l].use > 0
	}
	uses := s.uses
	if !s.spent {
		uses = 1
	}
	s.work += s.want * uses * len(labels)
	for j := s.want; j > 0; j-- {
		for use := range uses {
			state := j*s.uses + use
			least, pick := best[state], 0
			for l := range labels {
				before := max(0, j-int(labels[l].fits)) * s.uses
				if s.uses > 1 {
					d := s.less[use*s.uses+int(labels[l].use)]
					if d < 0 {
						continue
					}
					before += int(d)
				}
				if b := &best[before]; b.possible() {
					if sum := b.plus(labels[l].price); sum.less(least) {
						least, pick = sum, l+1
					}
				}
			}
			if pick > 0 {
				best[state] = least
				if s.trace {
					s.picks[picks+state] = int32(pick)
				}
			}
		}
	}
}

// of are the labels of an item.
func (s *sack) of(item int) []label {
	from := 0
	if item > 0 {
		from = s.ends[item-1]
	}
	return s.labels[from:s.ends[item]]
}

// least is the best state for a number: -1 where it cannot be reached.
func (s *sack) least(best []price, j int) int {
	found := -1
	for state := j * s.uses; state < (j+1)*s.uses; state++ {
		if best[state].possible() && (found < 0 || best[state].less(best[found])) {
			found = state
		}
	}
	return found
}

// each walks back from a state and tells the label taken of each item.
func (s *sack) each(state int, taken func(item int, l label)) {
	for i := range slices.Backward(s.ends) {
		pick := s.picks[i*len(s.best)+state]
		if pick == 0 {
			continue
		}
		l := s.of(i)[pick-1]
		taken(i, l)
		before := max(0, state/s.uses-int(l.fits)) * s.uses
		if s.uses > 1 {
			before += int(s.less[state%s.uses*s.uses+int(l.use)])
		}
		state = before
	}
}
