package placement

// dims tells apart how much of each budget that binds is used: a use is a number
// with a digit for each.
type dims struct {
	most   int // combinations; where there are more, the planner branches instead
	active []dim
	uses   int
	less   []int16 // use × use → their difference, -1 where there is none
}

type dim struct{ budget, cap, stride int }

func (d *dims) reset(most int) { d.most, d.active, d.uses = most, d.active[:0], 1 }

// activate tells the use of a budget apart from now on; false where that is too
// much.
func (d *dims) activate(budget, left int) bool {
	if d.uses*(left+1) > d.most {
		return false
	}
	d.active = append(d.active, dim{budget, left, d.uses})
	d.uses *= left + 1
	d.less = d.less[:0]
	for a := range d.uses {
		for b := range d.uses {
			d.less = append(d.less, int16(d.minus(a, b)))
		}
	}
	return true
}

func (d *dims) minus(a, b int) int {
	out := 0
	for _, dim := range d.active {
		x := a/dim.stride%(dim.cap+1) - b/dim.stride%(dim.cap+1)
		if x < 0 {
			return -1
		}
		out += x * dim.stride
	}
	return out
}

// use is what the leaving of those tenants who are still open takes; false when
// that is more than a budget has left.
func (p *Planner) use(tenants []int) (int, bool) {
	use := 0
	for _, dim := range p.dims.active {
		pods := 0
		for _, t := range tenants {
			if p.stands[t] == open {
				pods += p.pods(t, dim.budget)
			}
		}
		if pods > dim.cap {
			return 0, false
		}
		use += pods * dim.stride
	}
	return use, true
}

func (p *Planner) pods(t, budget int) int {
	n := 0
	for _, g := range p.tenants[t].Guards {
		if g.Budget == budget {
			n += g.Pods
		}
	}
	return n
}
