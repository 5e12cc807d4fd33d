package capacity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// together answers several asks at once: each finds what those before it have left, in the
// order in which all of them fit and the fewest leave.
type together struct {
	st   *cluster.State
	host *host
	asks []Ask
}

// attempt is the answers in one order.
type attempt struct {
	order []int // of asks
	items []diagnosis.CapacityItem
	world *question // the last
}

// answer is an item for each ask, in the order of the asks, and of several what holds of all.
func (t *together) answer(ctx context.Context) ([]diagnosis.CapacityItem, *diagnosis.CapacityTogether, error) {
	var first, best *attempt
	for _, order := range orders(len(t.asks)) {
		a, err := t.attempt(ctx, order)
		if err != nil {
			return nil, nil, err
		}
		if first == nil {
			first = a
		}
		if a.fits() && (best == nil || compareCost(a.cost(), best.cost()) < 0) {
			best = a
		}
		if best != nil && best.cost().Number == 0 {
			break
		}
	}
	if len(t.asks) < 2 {
		return first.items, nil, nil
	}
	out := &diagnosis.CapacityTogether{Answer: diagnosis.Yes, Evictions: []diagnosis.PodName{}, Nodes: []string{}}
	if best == nil {
		var err error
		if out.Answer, out.Why, err = t.lacking(ctx, first); err != nil {
			return nil, nil, err
		}
		return first.items, out, nil
	}
	for _, i := range best.items {
		out.Evictions = append(out.Evictions, i.Evict.Evictions...)
		out.Nodes = append(out.Nodes, i.Evict.Nodes...)
	}
	slices.SortFunc(out.Evictions, byName)
	slices.Sort(out.Nodes)
	out.Nodes = slices.Compact(out.Nodes)
	return best.items, out, nil
}

// orders are the orders of n asks, as asked first; beyond four asks that one and its reverse.
func orders(n int) [][]int {
	asked := make([]int, n)
	for i := range asked {
		asked[i] = i
	}
	if n > 4 {
		back := slices.Clone(asked)
		slices.Reverse(back)
		return [][]int{asked, back}
	}
	var out [][]int
	var extend func(begun, rest []int)
	extend = func(begun, rest []int) {
		if len(rest) == 0 {
			out = append(out, slices.Clone(begun))
		}
		for i, r := range rest {
			extend(append(slices.Clone(begun), r), slices.Delete(slices.Clone(rest), i, i+1))
		}
	}
	extend(nil, asked)
	return out
}

func (t *together) attempt(ctx context.Context, order []int) (*attempt, error) {
	out := &attempt{order: order, items: make([]diagnosis.CapacityItem, len(order))}
	before, names := newTaken(), []string(nil)
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("count %s: %w", t.asks[i].Resource, err)
		}
		q, err := newQuestion(t.st, t.asks[i], t.host, before)
		if err != nil {
			return nil, err
		}
		item := q.answer()
		item.After = slices.Clone(names)
		out.items[i], before, out.world = item, q.taken, q
		names = append(names, fmt.Sprintf("%s=%d", item.Resource, min(item.Asked, item.Evict.Fits)))
	}
	return out, nil
}

func (a *attempt) fits() bool {
	return !slices.ContainsFunc(a.items, func(i diagnosis.CapacityItem) bool { return !i.Fits() })
}

// cost is that of all plans.
func (a *attempt) cost() diagnosis.VictimCost {
	var sum diagnosis.VictimCost
	for _, i := range a.items {
		c := i.Evict.Proof.Cost
		if c.Number > 0 && (sum.Number == 0 || c.Highest > sum.Highest) {
			sum.Highest = c.Highest
		}
		sum.Sum, sum.Number, sum.LostSeconds = sum.Sum+c.Sum, sum.Number+c.Number, sum.LostSeconds+c.LostSeconds
	}
	return sum
}

func compareCost(a, b diagnosis.VictimCost) int {
	return cmp.Or(cmp.Compare(min(a.Number, 1), min(b.Number, 1)), cmp.Compare(a.Highest, b.Highest), cmp.Compare(a.Sum, b.Sum), cmp.Compare(a.Number, b.Number), cmp.Compare(a.LostSeconds, b.LostSeconds))
}

func byName(a, b diagnosis.PodName) int {
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
}

// lacking says why no order was found in which all fit: no where one of them does not fit even
// alone, or where they are more than all GPUs that nobody has to keep; else nobody knows.
func (t *together) lacking(ctx context.Context, tried *attempt) (answer diagnosis.Answer, why string, err error) {
	for i, a := range t.asks {
		item := tried.items[i]
		if len(item.After) > 0 {
			alone, err := (&together{t.st, t.host, t.asks[i : i+1]}).attempt(ctx, []int{0})
			if err != nil {
				return "", "", err
			}
			item = alone.items[0]
		}
		if !item.Fits() {
			return diagnosis.No, fmt.Sprintf("%d %s do not fit even alone", a.Count, a.Resource), nil
		}
	}
	if why := tried.world.beyondAll(t.asks); why != "" {
		return diagnosis.No, why, nil
	}
	return diagnosis.Undecided, "each fits alone; in no order that was tried do all of them, and not every way was tried", nil
}
