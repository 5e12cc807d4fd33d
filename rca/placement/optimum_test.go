package placement_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/crillab/gophersat/solver"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// Random clusters with gangs, budgets, priorities and holders who stay: the plan
// costs what a pseudo-boolean solver finds, which knows instances and starts and
// nothing of options, rows or knapsacks.
func TestOptimum(t *testing.T) {
	clusters := 10_000
	if testing.Short() {
		clusters = 500
	}
	kinds := []boards{boardsOf(model(t, "A100-40GB")), boardsOf(model(t, "A30-24GB")),
		boardsOf(nodeprobe.Model{ID: "core", Profiles: only(model(t, "A100-40GB"), core)}), boardsOf(tight)}
	random := rand.New(rand.NewPCG(5, 6))
	fewer, branched, optimal, greedy, greedyFailed := 0, 0, 0, 0, 0
	for i := range clusters {
		p := randomPuzzle(random, kinds[i%len(kinds)])
		problem := p.problem(t)
		planner := placement.NewPlanner(problem)
		if i/len(kinds)%2 > 0 {
			planner.Narrow()
		}
		plan := planner.Plan(p.k)
		p.check(t, problem, plan)
		want, possible := p.optimum(plan.Fits)
		if !possible || plan.Cost != want || !plan.Proof.Exact {
			t.Fatalf("cluster %d: %d fit at %+v (%+v), the optimum is %+v, possible %v\n%+v", i, plan.Fits, plan.Cost, plan.Proof, want, possible, p)
		}
		if plan.Fits < p.k {
			fewer++
			if better, possible := p.optimum(plan.Fits + 1); possible {
				t.Fatalf("cluster %d: at most %d fit, but one more does at %+v\n%+v", i, plan.Fits, better, p)
			}
		}
		if plan.Proof.Tried > 1 {
			branched++
		}
		if number, ok := p.greedy(plan.Fits); ok {
			optimal, greedy = optimal+plan.Cost.Number, greedy+number
		} else {
			greedyFailed++
		}
	}
	t.Logf("%d clusters, 0 differ from the optimum; in %d fewer fit than asked, %d needed branches", clusters, fewer, branched)
	t.Logf("greedy, instance by instance: %d leave where %d are enough (%.2f times), and no plan in %d clusters that have one",
		greedy, optimal, float64(greedy)/float64(max(optimal, 1)), greedyFailed)
}

// greedy takes whatever is cheapest for one more instance, again and again.
func (p *puzzle) greedy(target int) (number int, ok bool) {
	var leave []int
	left := func(tenant int) bool { return slices.Contains(leave, tenant) }
	for p.total(left) < target {
		var best []int
		for _, b := range p.gpus {
			var here []int
			for _, o := range b.owner {
				if o >= 0 && !left(o) && !slices.Contains(here, o) {
					here = append(here, o)
				}
			}
			before := p.fits(b, left)
			for set := 1; set < 1<<len(here); set++ {
				next := slices.Clone(leave)
				for k, o := range here {
					if set>>k&1 > 0 {
						next = append(next, o)
					}
				}
				if p.allowed(next) && p.fits(b, func(t int) bool { return slices.Contains(next, t) }) > before &&
					(best == nil || p.cost(next).Compare(p.cost(best)) < 0) {
					best = next
				}
			}
		}
		if best == nil {
			return 0, false
		}
		leave = best
	}
	return len(leave), true
}

// optimum asks gophersat for the least cost of k instances; false where there
// cannot be as many.
func (p *puzzle) optimum(k int) (placement.Cost, bool) {
	e := p.encode(k)
	if e == nil {
		return placement.Cost{}, false
	}
	s := solver.New(e.problem())
	if s.Minimize() < 0 {
		return placement.Cost{}, false
	}
	var leave []int
	values := s.Model()
	for tenant, v := range e.leaves {
		if values[v-1] {
			leave = append(leave, tenant)
		}
	}
	return p.cost(leave), true
}

// encoding is a puzzle in pseudo-boolean constraints; variables count from 1.
type encoding struct {
	vars    int
	rules   []solver.PBConstr
	leaves  []int // tenant → it leaves
	costs   []solver.Lit
	weights []int
}

func (e *encoding) variable() int {
	e.vars++
	return e.vars
}

// The weights put number before work lost, priorities before number, and the
// highest before their sum, for the figures of randomPuzzle.
const (
	perNumber  = 256
	perSum     = perNumber * 64
	perHighest = perSum * 512
)

func (p *puzzle) encode(k int) *encoding {
	e := &encoding{}
	for range p.tenants {
		e.leaves = append(e.leaves, e.variable())
	}
	e.rulesOfLeaving(p)
	var fits []int
	for _, b := range p.gpus {
		if p.remake == placement.Single {
			fits = append(fits, e.single(p, b)...)
		} else {
			fits = append(fits, e.whole(p, b)...)
		}
	}
	if len(fits) < k {
		return nil
	}
	e.rules = append(e.rules, solver.AtLeast(fits, k))
	return e
}

func (e *encoding) rulesOfLeaving(p *puzzle) {
	higher := map[int64]int{} // somebody of at least this priority leaves
	for _, prio := range []int64{-5, 0, 3, 10} {
		higher[prio] = e.variable()
		e.pay(higher[prio], perHighest)
	}
	for i, tenant := range p.tenants {
		if tenant.Stays {
			e.rules = append(e.rules, solver.PropClause(-e.leaves[i]))
		}
		for prio, v := range higher {
			if prio <= tenant.Priority {
				e.rules = append(e.rules, solver.PropClause(-e.leaves[i], v))
			}
		}
		e.pay(e.leaves[i], perSum*int(max(0, tenant.Priority))+perNumber+int(tenant.Lost))
	}
	for b, most := range p.budgets {
		var stay, pods []int
		sum := 0
		for i, tenant := range p.tenants {
			for _, g := range tenant.Guards {
				if g.Budget == b {
					stay, pods, sum = append(stay, -e.leaves[i]), append(pods, g.Pods), sum+g.Pods
				}
			}
		}
		if sum > most {
			e.rules = append(e.rules, solver.GtEq(stay, pods, sum-most))
		}
	}
}

func (e *encoding) pay(v, weight int) {
	e.costs, e.weights = append(e.costs, solver.IntToLit(int32(v))), append(e.weights, weight)
}

// single has a variable for each start at which an instance may be made: who
// holds a slice of it leaves, and no two overlap.
func (e *encoding) single(p *puzzle, b board) []int {
	fits := e.starts(p)
	profile := p.model.Profiles[p.profile]
	for i, a := range b.set {
		if b.owner[i] == idleOwner {
			continue
		}
		q := p.model.Profiles[a.profile]
		for k, start := range profile.Starts {
			if start < a.start+q.MemorySlices && a.start < start+profile.MemorySlices {
				e.rules = append(e.rules, e.needs(fits[k], b.owner[i]))
			}
		}
	}
	// Who stays counts towards the maximum and the compute slices.
	e.limit(b, fits, 1, profile.Max, func(a at) int {
		if a.profile == p.profile {
			return 1
		}
		return 0
	})
	e.limit(b, fits, profile.ComputeSlices, p.judge.compute, func(a at) int { return p.model.Profiles[a.profile].ComputeSlices })
	return fits
}

func (e *encoding) starts(p *puzzle) []int {
	profile := p.model.Profiles[p.profile]
	var fits []int
	for range profile.Starts {
		fits = append(fits, e.variable())
	}
	for i, x := range profile.Starts {
		for k, y := range profile.Starts[:i] {
			if x < y+profile.MemorySlices {
				e.rules = append(e.rules, solver.PropClause(-fits[i], -fits[k]))
			}
		}
	}
	return fits
}

func (e *encoding) needs(v, owner int) solver.PBConstr {
	if owner < 0 {
		return solver.PropClause(-v)
	}
	return solver.PropClause(-v, e.leaves[owner])
}

// limit: what is made and what stays weigh at most so much together.
func (e *encoding) limit(b board, fits []int, each, most int, weigh func(at) int) {
	weights := map[int]int{} // literal that is true when the weight is not there
	sum := 0
	for _, v := range fits {
		weights[-v] += each
		sum += each
	}
	for i, a := range b.set {
		switch w := weigh(a); {
		case b.owner[i] == otherOwner:
			most -= w
		case b.owner[i] >= 0 && w > 0:
			weights[e.leaves[b.owner[i]]] += w
			sum += w
		}
	}
	if sum <= most {
		return
	}
	var lits, ws []int
	for l := range weights {
		lits = append(lits, l)
	}
	slices.Sort(lits)
	for _, l := range lits {
		ws = append(ws, weights[l])
	}
	e.rules = append(e.rules, solver.GtEq(lits, ws, sum-most))
}

// whole has a variable for the GPU being re-made, which everybody leaves for.
func (e *encoding) whole(p *puzzle, b board) []int {
	made := e.variable()
	for i := range b.set {
		if b.owner[i] != idleOwner {
			e.rules = append(e.rules, e.needs(made, b.owner[i]))
		}
	}
	fits := e.starts(p)
	for _, v := range fits {
		e.rules = append(e.rules, solver.PropClause(-v, made))
	}
	e.limit(board{}, fits, 1, p.model.Profiles[p.profile].Max, nil)
	e.limit(board{}, fits, p.model.Profiles[p.profile].ComputeSlices, p.judge.compute, nil)
	for i, a := range b.set {
		if a.profile != p.profile {
			continue
		}
		v := e.variable() // this one, as it is
		e.rules = append(e.rules, solver.PropClause(-v, -made))
		if b.owner[i] != idleOwner {
			e.rules = append(e.rules, e.needs(v, b.owner[i]))
		}
		fits = append(fits, v)
	}
	return fits
}

func (e *encoding) problem() *solver.Problem {
	pb := solver.ParsePBConstrs(e.rules)
	pb.SetCostFunc(e.costs, e.weights)
	return pb
}
