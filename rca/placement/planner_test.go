package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/unpend/unpend/rca/placement"
)

// What a planner keeps from update to update is what a new one works out.
func TestUpdateKeepsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	kind := boardsOf(model(t, "A100-40GB"))
	for range 300 {
		p := randomPuzzle(r, kind)
		problem := p.problem(t)
		planner := placement.NewPlanner(problem)
		for range 12 {
			place := r.IntN(len(p.gpus))
			before := len(p.tenants)
			set := kind.sets[r.IntN(len(kind.sets))]
			b := board{set: set}
			gang := r.Float64() * 0.2
			for range set {
				b.owner = append(b.owner, p.randomOwner(r, gang))
			}
			for _, tenant := range p.tenants[before:] {
				planner.AddTenant(tenant)
			}
			p.gpus[place] = b
			planner.Update(place, p.options(t, b))
			if r.IntN(2) == 0 {
				continue
			}
			fresh := p.problem(t)
			got, want := planner.Plan(p.k), placement.NewPlanner(fresh).Plan(p.k)
			p.check(t, fresh, got)
			if got.Fits != want.Fits || got.Cost != want.Cost || got.Proof.Exact != want.Proof.Exact || got.Proof.Bound != want.Proof.Bound {
				t.Fatalf("%+v, a new planner finds %+v\n%+v", got, want, p)
			}
		}
	}
}

// No set of tenants that leaves one of the places alone costs less than the
// runner-up, and where there are no budgets one costs as much.
func TestRunnerUp(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	kind := boardsOf(model(t, "A30-24GB"))
	told := 0
	for range 3000 {
		p := randomPuzzle(r, kind)
		homes := make([]int, len(p.tenants))
		for _, b := range p.gpus {
			for _, o := range slices.Compact(slices.Sorted(slices.Values(b.owner))) {
				if o >= 0 {
					homes[o]++
				}
			}
		}
		if len(p.tenants) > 9 || slices.ContainsFunc(homes, func(n int) bool { return n > 1 }) {
			continue
		}
		plan := placement.NewPlanner(p.problem(t)).Plan(p.k)
		if plan.Cost.Number == 0 || plan.Proof.Tried > 1 {
			continue
		}
		want, ok := p.runnerUp(plan)
		got := plan.Proof.RunnerUp
		if ok && (got == nil || got.Compare(want) > 0) || len(p.budgets) == 0 && (got != nil) != ok || len(p.budgets) == 0 && ok && *got != want {
			t.Fatalf("runner-up %v, want %+v %v\n%+v\n%+v", got, want, ok, plan, p)
		}
		if ok && *got == want {
			told++
		}
	}
	t.Logf("%d runners-up", told)
	if told == 0 {
		t.Error("none was tried")
	}
}

func (p *puzzle) runnerUp(plan placement.Plan) (best placement.Cost, ok bool) {
	for _, b := range p.gpus {
		evicts := func(leave []int) bool {
			return slices.ContainsFunc(leave, func(t int) bool { return slices.Contains(b.owner, t) })
		}
		if !evicts(plan.Leave) {
			continue
		}
		for set := range 1 << len(p.tenants) {
			var leave []int
			for t := range p.tenants {
				if set>>t&1 > 0 {
					leave = append(leave, t)
				}
			}
			c := p.cost(leave)
			if c.Highest != plan.Cost.Highest || evicts(leave) || !p.allowed(leave) || ok && c.Compare(best) >= 0 {
				continue
			}
			if p.total(func(t int) bool { return slices.Contains(leave, t) }) >= plan.Fits {
				best, ok = c, true
			}
		}
	}
	return best, ok
}

// 57 1g on eight empty A100 are at most 56, and that takes no search.
func TestAtMost(t *testing.T) {
	problem := placement.Problem{Places: make([][]placement.Option, 8)}
	for i := range problem.Places {
		problem.Places[i] = a100(t).Options("1g.5gb", placement.Single, nil)
	}
	plan := placement.NewPlanner(problem).Plan(57)
	if plan.Fits != 56 || len(plan.Moves) != 8 || plan.Cost != (placement.Cost{}) || plan.Proof.Work != 0 || !plan.Proof.Exact {
		t.Errorf("%+v", plan)
	}
}

// Beyond what is exact a plan can be carried out, keeps to the budgets, and does
// not claim to be the cheapest.
func TestLargePlans(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	p := puzzle{remake: placement.Single}
	problem := placement.Problem{Budgets: []int{300}}
	for i := range 4000 {
		problem.Tenants = append(problem.Tenants, placement.Tenant{Lost: r.Int64N(1000)})
		if i%2 == 0 {
			problem.Tenants[i].Guards = []placement.Guard{{Budget: 0, Pods: 1}}
		}
		problem.Places = append(problem.Places, []placement.Option{{Fits: 1, Leave: []int{i}}})
	}
	p.tenants, p.budgets = problem.Tenants, problem.Budgets
	planner := placement.NewPlanner(problem)
	for _, c := range []struct {
		k, fits int
		exact   bool
	}{{10, 10, true}, {200, 200, true}, {1000, 1000, false}, {2000, 2000, false}, {4000, 2300, false}} {
		plan := planner.Plan(c.k)
		if plan.Fits != c.fits || plan.Cost.Number != c.fits || c.exact && !plan.Proof.Exact || !p.allowed(plan.Leave) || p.cost(plan.Leave) != plan.Cost {
			t.Errorf("%d: %d fit at %+v, %+v", c.k, plan.Fits, plan.Cost, plan.Proof)
		}
		if plan.Proof.Bound.Compare(plan.Cost) > 0 {
			t.Errorf("%d: bound %+v above %+v", c.k, plan.Proof.Bound, plan.Cost)
		}
	}
	all := placement.NewPlanner(placement.Problem{Tenants: make([]placement.Tenant, len(problem.Places)), Places: problem.Places}).Plan(5000)
	if all.Fits != 4000 || len(all.Leave) != 4000 || !all.Proof.Exact {
		t.Errorf("everybody: %d fit, %d leave, %+v", all.Fits, len(all.Leave), all.Proof)
	}
}

func TestReconfigure(t *testing.T) {
	one, two := a100(t, on("1g.5gb", 0), idle("3g.20gb", 4)), a100(t, on("2g.10gb", 0))
	two.Index = 1
	names := map[string]int{"1g.5gb": 3, "2g.10gb": 2}
	tenant := func(s placement.Slot) int { return names[s.Profile] }
	gpus := []placement.GPU{one, two}
	halves := placement.Layout{"3g.20gb": 2}
	for name, c := range map[string]struct {
		layouts map[int]placement.Layout
		want    placement.Option
		ok      bool
	}{
		"both":                    {map[int]placement.Layout{0: halves, 1: halves}, placement.Option{Fits: 4, Remade: true, Leave: []int{2, 3}}, true},
		"one, the other as it is": {map[int]placement.Layout{0: one.Layout(), 1: halves}, placement.Option{Fits: 3, Remade: true, Leave: []int{2}}, true},
		"none":                    {nil, placement.Option{Fits: 1}, true},
		"impossible":              {map[int]placement.Layout{0: {"7g.40gb": 2}}, placement.Option{}, false},
	} {
		if got, ok := placement.Reconfigure(gpus, c.layouts, "3g.20gb", tenant); ok != c.ok || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v %v, want %+v", name, got, ok, c.want)
		}
	}
	names["2g.10gb"] = -1
	if got, ok := placement.Reconfigure(gpus, map[int]placement.Layout{1: halves}, "3g.20gb", tenant); ok {
		t.Errorf("somebody stays: %+v", got)
	}
}

// Named configs of nodes are places like any other: the planner picks one of each.
func TestPlanOverConfigs(t *testing.T) {
	problem := placement.Problem{Tenants: make([]placement.Tenant, 5), Places: [][]placement.Option{
		{{Fits: 1}, {Fits: 4, Remade: true, Leave: []int{0, 1}}},
		{{Fits: 2, Remade: true, Leave: []int{2}}, {Fits: 6, Remade: true, Leave: []int{2, 3, 4}}},
	}}
	plan := placement.NewPlanner(problem).Plan(6)
	if plan.Fits != 6 || !slices.Equal(plan.Leave, []int{0, 1, 2}) || !slices.Equal(plan.Moves, []placement.Move{{Place: 0, Option: 1}, {Place: 1, Option: 0}}) ||
		plan.Proof.Bound != plan.Cost || plan.Proof.RunnerUp == nil || *plan.Proof.RunnerUp != (placement.Cost{Number: 3}) {
		t.Errorf("%+v, %+v", plan, plan.Proof.RunnerUp)
	}
}
