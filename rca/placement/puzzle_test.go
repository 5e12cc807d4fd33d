package placement_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// puzzle is a random cluster of one model and what is asked of it.
type puzzle struct {
	model   nodeprobe.Model
	judge   judge
	gpus    []board
	tenants []placement.Tenant
	budgets []int
	profile int
	remake  placement.Remake
	k       int
}

// board is a GPU: its instances, and who holds each.
type board struct {
	set   []at
	owner []int
}

// The owners who are no tenant.
const (
	idleOwner  = -1
	otherOwner = -2 // somebody who could not be told
)

type boards struct {
	model nodeprobe.Model
	judge judge
	sets  [][]at
}

func boardsOf(m nodeprobe.Model) boards {
	j := newJudge(m.Profiles)
	return boards{m, j, j.sets()}
}

func randomPuzzle(r *rand.Rand, b boards) puzzle {
	p := puzzle{model: b.model, judge: b.judge, profile: r.IntN(len(b.model.Profiles)), remake: placement.Remake(r.IntN(2))}
	for range r.IntN(3) {
		p.budgets = append(p.budgets, r.IntN(4))
	}
	gang := r.Float64() * 0.4
	for range 1 + r.IntN(5) {
		set := b.sets[r.IntN(len(b.sets))]
		bd := board{set: set}
		for range set {
			bd.owner = append(bd.owner, p.randomOwner(r, gang))
		}
		p.gpus = append(p.gpus, bd)
	}
	p.k = 1 + r.IntN(1+b.model.Profiles[p.profile].Max*len(p.gpus)*2/3)
	return p
}

func (p *puzzle) randomOwner(r *rand.Rand, gang float64) int {
	switch x := r.IntN(12); {
	case x == 0:
		return otherOwner
	case x < 3:
		return idleOwner
	}
	if len(p.tenants) > 0 && r.Float64() < gang {
		return r.IntN(len(p.tenants))
	}
	t := placement.Tenant{Stays: r.IntN(12) == 0, Priority: int64([]int{-5, 0, 0, 0, 3, 10}[r.IntN(6)]), Lost: r.Int64N(6)}
	for b := range p.budgets {
		if r.IntN(3) == 0 {
			t.Guards = append(t.Guards, placement.Guard{Budget: b, Pods: 1 + r.IntN(5)/4})
		}
	}
	p.tenants = append(p.tenants, t)
	return len(p.tenants) - 1
}

// problem is the puzzle as the planner sees it.
func (p *puzzle) problem(t testing.TB) placement.Problem {
	t.Helper()
	out := placement.Problem{Tenants: slices.Clone(p.tenants), Budgets: slices.Clone(p.budgets)}
	for _, b := range p.gpus {
		out.Places = append(out.Places, p.options(t, b))
	}
	return out
}

func (p *puzzle) options(t testing.TB, b board) []placement.Option {
	t.Helper()
	var held, free []at
	owners := map[int]int{}
	for i, a := range b.set {
		if b.owner[i] == idleOwner {
			free = append(free, a)
		} else {
			held = append(held, a)
			owners[a.start] = b.owner[i]
		}
	}
	gpu := gpuOf(t, p.model, held, free)
	return gpu.Options(p.model.Profiles[p.profile].Name, p.remake, func(s placement.Slot) int { return owners[s.Start] })
}

// fits is how many instances nobody holds, or could be made, on a board once
// some tenants have left, by the judge.
func (p *puzzle) fits(b board, left func(tenant int) bool) int {
	var stay []at
	same := 0
	for i, a := range b.set {
		o := b.owner[i]
		gone := o == idleOwner || o >= 0 && left(o)
		if !gone {
			stay = append(stay, a)
		} else if a.profile == p.profile {
			same++
		}
	}
	if p.remake == placement.WholeGPU && len(stay) > 0 {
		return same
	}
	most, _ := p.judge.more(stay, p.profile)
	return most
}

func (p *puzzle) total(left func(tenant int) bool) int {
	sum := 0
	for _, b := range p.gpus {
		sum += p.fits(b, left)
	}
	return sum
}

func (p *puzzle) cost(leave []int) placement.Cost {
	var c placement.Cost
	for i, t := range leave {
		tenant := p.tenants[t]
		if i == 0 || tenant.Priority > c.Highest {
			c.Highest = tenant.Priority
		}
		c.Sum += max(0, tenant.Priority)
		c.Lost += tenant.Lost
		c.Number++
	}
	return c
}

// allowed says whether budgets and those who stay let the tenants leave.
func (p *puzzle) allowed(leave []int) bool {
	spent := make([]int, len(p.budgets))
	for _, t := range leave {
		if p.tenants[t].Stays {
			return false
		}
		for _, g := range p.tenants[t].Guards {
			spent[g.Budget] += g.Pods
		}
	}
	for b, n := range spent {
		if n > p.budgets[b] {
			return false
		}
	}
	return true
}

// check carries a plan out, and holds its parts against each other.
func (p *puzzle) check(t testing.TB, problem placement.Problem, plan placement.Plan) {
	t.Helper()
	left := func(tenant int) bool { return slices.Contains(plan.Leave, tenant) }
	if got := p.total(left); got < plan.Fits {
		t.Fatalf("%d fit once %v left, the plan says %d", got, plan.Leave, plan.Fits)
	}
	if !p.allowed(plan.Leave) || p.cost(plan.Leave) != plan.Cost {
		t.Fatalf("%v leave at %+v, said to cost %+v, allowed %v", plan.Leave, p.cost(plan.Leave), plan.Cost, p.allowed(plan.Leave))
	}
	fits, touched := 0, map[int]bool{}
	for _, m := range plan.Moves {
		o := problem.Places[m.Place][m.Option]
		for _, l := range o.Leave {
			if !left(l) {
				t.Fatalf("move %+v needs %d to leave, who does not", m, l)
			}
		}
		fits += o.Fits
		touched[m.Place] = true
	}
	for place, options := range problem.Places {
		for _, o := range options {
			if !touched[place] && len(o.Leave) == 0 && !o.Remade {
				fits += o.Fits
			}
		}
	}
	if fits < plan.Fits {
		t.Fatalf("moves %v give %d, the plan says %d", plan.Moves, fits, plan.Fits)
	}
	if plan.Proof.Bound.Compare(plan.Cost) > 0 {
		t.Fatalf("bound %+v above the cost %+v", plan.Proof.Bound, plan.Cost)
	}
	if r := plan.Proof.RunnerUp; r != nil && r.Compare(plan.Cost) < 0 {
		t.Fatalf("runner-up %+v below the cost %+v", *r, plan.Cost)
	}
}
