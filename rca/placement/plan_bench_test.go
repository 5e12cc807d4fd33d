package placement_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// crowd is a cluster of nodes with 8 A100, every slice held. On one node in a thousand
// a gang has a pod on each GPU. One pod in eight is guarded by one of many budgets,
// and the 500 that it would be best to evict by one of two that let four go.
type crowd struct {
	r       *rand.Rand
	model   nodeprobe.Model
	full    [][]at
	problem placement.Problem
	fresh   int // pods of the two budgets that bind
}

func newCrowd(t testing.TB, nodes int) *crowd {
	t.Helper()
	c := &crowd{r: rand.New(rand.NewPCG(15, 16)), model: model(t, "A100-40GB")}
	c.model.Profiles = only(c.model, core)
	for _, set := range boardsOf(c.model).sets {
		held := 0
		for _, a := range set {
			held += c.model.Profiles[a.profile].MemorySlices
		}
		if held >= 7 {
			c.full = append(c.full, set)
		}
	}
	c.problem.Budgets = make([]int, max(1, nodes/10))
	for i := range c.problem.Budgets {
		c.problem.Budgets[i] = c.r.IntN(4)
	}
	c.problem.Budgets = append(c.problem.Budgets, 4, 4)
	for range nodes {
		gang := -1
		if c.r.IntN(1000) == 0 {
			gang = c.tenant(false)
		}
		for range 8 {
			c.problem.Places = append(c.problem.Places, c.gpu(t, gang))
		}
	}
	return c
}

func (c *crowd) tenant(alone bool) int {
	tenant := placement.Tenant{Lost: c.r.Int64N(1 << 20)}
	switch many := len(c.problem.Budgets) - 2; {
	case alone && c.fresh < 500: // a whole board for one eviction
		c.fresh++
		tenant.Lost >>= 8
		tenant.Guards = []placement.Guard{{Budget: many + c.r.IntN(2), Pods: 1}}
	case c.r.IntN(8) == 0:
		tenant.Guards = []placement.Guard{{Budget: c.r.IntN(many), Pods: 1}}
	}
	c.problem.Tenants = append(c.problem.Tenants, tenant)
	return len(c.problem.Tenants) - 1
}

// gpu is a full GPU, its first slot held by the gang if there is one.
func (c *crowd) gpu(t testing.TB, gang int) []placement.Option {
	gpu := gpuOf(t, c.model, c.full[c.r.IntN(len(c.full))], nil)
	owners := map[int]int{}
	for _, s := range gpu.Slots {
		if owners[s.Start] = gang; gang < 0 {
			owners[s.Start] = c.tenant(len(gpu.Slots) == 1)
		}
		gang = -1
	}
	return gpu.Options("3g.20gb", placement.Single, func(s placement.Slot) int { return owners[s.Start] })
}

// P4: the exact joint plan for 64 more 3g on 5,000 full nodes, budgets and gangs
// included, from rows that are kept.
func BenchmarkJointPlan(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		c := newCrowd(b, nodes)
		for _, k := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("nodes=%d/k=%d", nodes, k), func(b *testing.B) {
				planner := placement.NewPlanner(c.problem)
				planner.Plan(k)
				b.ReportAllocs()
				var plan placement.Plan
				for b.Loop() {
					plan = planner.Plan(k)
				}
				if plan.Fits != k || !plan.Proof.Exact {
					b.Fatalf("%d fit, %+v", plan.Fits, plan.Proof)
				}
				b.ReportMetric(float64(plan.Proof.Tried), "problems")
				b.ReportMetric(float64(plan.Proof.Work), "steps")
			})
		}
	}
}

// P3, the engine's part: the cheapest fix for one pod on 1,000 full nodes, from
// rows that are kept, after one row has changed.
func BenchmarkCheapestFix(b *testing.B) {
	c := newCrowd(b, 1000)
	planner := placement.NewPlanner(c.problem)
	planner.Plan(1)
	b.ReportAllocs()
	for b.Loop() {
		planner.Update(7, c.problem.Places[7])
		if plan := planner.Plan(1); plan.Fits != 1 || !plan.Proof.Exact {
			b.Fatal(plan)
		}
	}
}

// The row of one GPU: every set of its tenants that is worth weighing.
func BenchmarkOptions(b *testing.B) {
	gpu := a100(b, on("1g.5gb", 0), on("1g.5gb", 1), on("2g.10gb", 2), on("3g.20gb", 4))
	tenant := func(s placement.Slot) int { return s.Start }
	b.ReportAllocs()
	for b.Loop() {
		if len(gpu.Options("3g.20gb", placement.Single, tenant)) == 0 {
			b.Fatal("none")
		}
	}
}

// P7: 57 1g on eight empty A100 are at most 56.
func BenchmarkAtMost(b *testing.B) {
	x := placement.NewIndex()
	problem := placement.Problem{}
	for i := range 8 {
		x.Set(i, 0, a100(b))
		problem.Places = append(problem.Places, a100(b).Options("1g.5gb", placement.Single, nil))
	}
	ask := x.Ask("1g.5gb")
	b.Run("index", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if x.Totals(ask, nil).Room != 56 {
				b.Fatal("not 56")
			}
		}
	})
	b.Run("plan", func(b *testing.B) {
		planner := placement.NewPlanner(problem)
		b.ReportAllocs()
		for b.Loop() {
			if planner.Plan(57).Fits != 56 {
				b.Fatal("not 56")
			}
		}
	})
}

// Planning allocates nothing once it has planned, budgets that bind included.
func TestPlansDoNotAllocate(t *testing.T) {
	c := newCrowd(t, 200)
	planner := placement.NewPlanner(c.problem)
	for _, k := range []int{1, 64} {
		bound := planner.Plan(k).Proof.Bound
		if n := testing.AllocsPerRun(20, func() {
			planner.Update(3, c.problem.Places[3])
			planner.Plan(k)
		}); n > 0 {
			t.Errorf("k=%d: %v allocations", k, n)
		}
		if plan := planner.Plan(k); k == 64 && plan.Cost == bound {
			t.Errorf("no budget binds: %+v", plan.Proof)
		}
	}
}

// Growth, in steps: a plan takes O(k log G + k²), an update of one place O(log G).
func TestPlanGrowth(t *testing.T) {
	const perStep = 16 // levels and labels, and the proof beside the plan
	for _, nodes := range []int{25, 250, 2500} {
		c := newCrowd(t, nodes)
		for i := range c.problem.Budgets {
			c.problem.Budgets[i] = 1 << 20 // none binds
		}
		gpus := len(c.problem.Places)
		planner := placement.NewPlanner(c.problem)
		planner.Plan(1)
		for _, k := range []int{4, 16, 64} {
			steps := planner.Plan(k).Proof.Work
			planner.Update(5, c.problem.Places[6])
			update := planner.Plan(k).Proof.Work - steps
			t.Logf("%d GPUs, k=%d: %d steps, %d more after an update", gpus, k, steps, update)
			if most := perStep * (k*bits.Len(uint(gpus)) + k*k); steps > most {
				t.Errorf("%d GPUs, k=%d: %d steps, at most %d were expected", gpus, k, steps, most)
			}
			if most := perStep * 2 * (bits.Len(uint(gpus)) + k); update > most {
				t.Errorf("%d GPUs, k=%d: %d steps for one update, at most %d were expected", gpus, k, update, most)
			}
		}
	}
}
