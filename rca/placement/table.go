package placement

import "slices"

// table is what a unit offers: the price of each number of instances beyond the
// free ones, by use of budgets.
type table struct {
	uses  int
	cells []price
}

func (t *table) reset(most, uses int) {
	t.uses, t.cells = uses, t.cells[:0]
	for range (most + 1) * uses {
		t.cells = append(t.cells, never)
	}
}

func (t *table) lower(fits, use int, to price) {
	if cell := &t.cells[fits*t.uses+use]; to.less(*cell) {
		*cell = to
	}
}

// labels appends what is worth taking.
func (t *table) labels(out []label) []label {
	least := never // of more instances, where there is one use only
	from := len(out)
	for state := len(t.cells) - 1; state >= t.uses; state-- {
		cell := t.cells[state]
		if !cell.possible() || t.uses == 1 && !cell.less(least) {
			continue
		}
		least = cell
		out = append(out, label{int32(state / t.uses), int32(state % t.uses), cell})
	}
	slices.Reverse(out[from:])
	return out
}
