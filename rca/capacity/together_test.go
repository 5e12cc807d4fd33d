package capacity

import (
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

func mig(profile string, n int) Ask { return Ask{view.MIGPrefix + profile, n} }

// Of one GPU that nobody holds, what one resource takes the next does not get: in whatever
// order they are asked for, the answer is one for all of them.
func TestCapacityTogether(t *testing.T) {
	for name, c := range map[string]struct {
		asks []Ask
		want diagnosis.CapacityTogether
	}{
		"beside each other":         {[]Ask{mig("3g.20gb", 1), mig("2g.10gb", 2)}, diagnosis.CapacityTogether{Answer: diagnosis.Yes, Nodes: []string{"n"}}},
		"the small one asked first": {[]Ask{mig("1g.5gb", 3), mig("4g.20gb", 1)}, diagnosis.CapacityTogether{Answer: diagnosis.Yes, Nodes: []string{"n"}}},
		"each alone, not together":  {[]Ask{mig("7g.40gb", 1), mig("1g.5gb", 1)}, diagnosis.CapacityTogether{Answer: diagnosis.No, Why: "together they are 9 memory slices, and the GPUs that nobody has to keep have 8"}},
		"one not even alone":        {[]Ask{mig("1g.5gb", 1), mig("3g.20gb", 3)}, diagnosis.CapacityTogether{Answer: diagnosis.No, Why: "3 nvidia.com/mig-3g.20gb do not fit even alone"}},
		"three":                     {[]Ask{mig("1g.5gb", 1), mig("2g.10gb", 1), mig("3g.20gb", 1)}, diagnosis.CapacityTogether{Answer: diagnosis.Yes, Nodes: []string{"n"}}},
		"one that needs two slices": {[]Ask{mig("3g.20gb", 1), mig("1g.10gb", 2)}, diagnosis.CapacityTogether{Answer: diagnosis.Yes, Nodes: []string{"n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.report(f.node("n"), nodeprobe.GPU{})
			list, err := Capacity(t.Context(), f.st, c.asks, Guest{})
			if err != nil || list.Together == nil {
				t.Fatalf("%+v, %v", list, err)
			}
			c.want.Evictions = []diagnosis.PodName{}
			if c.want.Nodes == nil {
				c.want.Nodes = []string{}
			}
			if diff := cmp.Diff(&c.want, list.Together); diff != "" || list.Answer() != c.want.Answer {
				t.Error(diff)
			}
			for i, item := range list.Items {
				if item.Resource != c.asks[i].Resource || item.Asked != c.asks[i].Count {
					t.Errorf("item %d is of %s=%d", i, item.Resource, item.Asked)
				}
			}
		})
	}
}

// A budget that lets one pod go lets one go for all that is asked together, and who leaves
// for one resource is gone for the next.
func TestCapacityTogetherKeepsBudgets(t *testing.T) {
	f := newFleet(t)
	f.report(f.node("a"), nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "x"), f.instance("3g.20gb", 4, "x")}})
	f.report(f.node("b"), nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("2g.10gb", 0, "y")}})
	x, y := f.pod("x", "a", view.MIGPrefix+"3g.20gb", 2), f.pod("y", "b", view.MIGPrefix+"2g.10gb", 1)
	asks := []Ask{mig("3g.20gb", 2), mig("7g.40gb", 1)}
	list, err := Capacity(t.Context(), f.st, asks, Guest{})
	want := []diagnosis.PodName{{Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}}
	if err != nil || list.Answer() != diagnosis.Yes || !slices.Equal(list.Together.Evictions, want) {
		t.Errorf("%+v, %v", list.Together, err)
	}
	if one := list.Items[0]; len(one.After) > 0 || len(one.Evict.Evictions) != 1 || !slices.Equal(list.Items[1].After, []string{"nvidia.com/mig-3g.20gb=2"}) {
		t.Errorf("%+v", list.Items)
	}
	x.Labels["app"], y.Labels["app"] = "s", "s"
	f.st.PDBs = append(f.st.PDBs, budgetOf("b", 1))
	list, err = Capacity(t.Context(), f.st, asks, Guest{})
	if err != nil || list.Answer() == diagnosis.Yes || list.Together.Why == "" {
		t.Errorf("the budget lets one go: %+v, %v", list.Together, err)
	}
}

// CPU of a node is shared by all its GPUs: what a pod on one takes, one on the next lacks,
// also after somebody has left, and also one of another resource.
func TestCapacityLikeSharesCPU(t *testing.T) {
	f := newFleet(t)
	n := f.node("n")
	more(more(n.Status.Allocatable, "cpu", 5), "pods", 10)
	f.report(n, nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "x")}}, nodeprobe.GPU{Instances: []nodeprobe.Instance{f.instance("3g.20gb", 0, "y")}})
	for _, name := range []string{"x", "y"} {
		p := f.pod(name, "n", view.MIGPrefix+"3g.20gb", 1)
		p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
	}
	like := f.pod("like", "", view.MIGPrefix+"3g.20gb", 1)
	like.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
	list, err := Capacity(t.Context(), f.st, []Ask{mig("3g.20gb", 4)}, Guest{Like: like})
	if err != nil {
		t.Fatal(err)
	}
	// 5 CPUs, 1 each of x and y: 3 are free, 5 once both are gone, so two such pods fit.
	if e := list.Items[0].Evict; e.Fits != 2 || len(e.Evictions) != 1 {
		t.Errorf("%+v", e)
	}
	list, err = Capacity(t.Context(), f.st, []Ask{mig("3g.20gb", 1), mig("2g.10gb", 2)}, Guest{Like: like})
	if err != nil || list.Answer() == diagnosis.Yes {
		t.Errorf("three on 5 CPUs, 2 each: %+v, %v", list.Together, err)
	}
}

// Random clusters against every set of pods and every layout: a yes can be had, a no cannot,
// and where nobody knows nothing is claimed.
func TestCapacityTogetherOfRandomClusters(t *testing.T) {
	clusters := 1000
	if testing.Short() {
		clusters = 150
	}
	r := rand.New(rand.NewPCG(3, 4))
	grid, err := placement.NewGrid(newFleet(t).a100.Profiles)
	if err != nil {
		t.Fatal(err)
	}
	answers, missed := map[diagnosis.Answer]int{}, 0
	for i := range clusters {
		f := randomFleet(t, r)
		if f.byName = i%2 > 0; f.byName {
			f.st.ConfigMaps, f.st.ClusterPolicies = nil, nil
		}
		k := r.Perm(len(f.a100.Profiles))
		a, b := f.a100.Profiles[k[0]], f.a100.Profiles[k[1]]
		asks := []Ask{mig(view.Spelled(a.Name), 1+r.IntN(3)), mig(view.Spelled(b.Name), 1+r.IntN(3))}
		list, err := Capacity(t.Context(), f.st, asks, Guest{})
		if err != nil {
			t.Fatal(err)
		}
		least := f.fewestOfBoth(grid, [2]nodeprobe.Profile{a, b}, [2]int{asks[0].Count, asks[1].Count})
		answers[list.Answer()]++
		switch e := list.Together.Evictions; {
		case list.Answer() == diagnosis.Yes && (least < 0 || len(e) < least):
			t.Fatalf("cluster %d, %v: yes by evicting %v; %d have to leave", i, asks, e, least)
		case list.Answer() == diagnosis.No && least >= 0:
			t.Fatalf("cluster %d, %v: no (%s); yes once %d have left", i, asks, list.Together.Why, least)
		case list.Answer() == diagnosis.Undecided && least >= 0:
			missed++
		}
	}
	t.Logf("%v; of the unknown %d can be had", answers, missed)
	if answers[diagnosis.Yes] == 0 || answers[diagnosis.No] == 0 || missed*20 > clusters {
		t.Errorf("too few are answered: %v, %d missed", answers, missed)
	}
}

// fewestOfBoth tries every set of pods; negative where none is enough.
func (f *fleet) fewestOfBoth(grid *placement.Grid, of [2]nodeprobe.Profile, asked [2]int) int {
	least := -1
	for set := range 1 << len(f.st.Pods) {
		n := bits.OnesCount(uint(set))
		if least >= 0 && n >= least {
			continue
		}
		gone := func(h *nodeprobe.Holder) bool {
			i := slices.IndexFunc(f.st.Pods, func(pod *corev1.Pod) bool { return pod.Name == h.Pod })
			return i >= 0 && set>>i&1 > 0
		}
		sums := map[[2]int]bool{{}: true}
		for _, geo := range f.trusted {
			for _, ways := range f.ways(grid, geo, of, gone) {
				next := map[[2]int]bool{}
				for s := range sums {
					for w := range ways {
						next[[2]int{min(asked[0], s[0]+w[0]), min(asked[1], s[1]+w[1])}] = true
					}
				}
				sums = next
			}
		}
		if sums[asked] {
			least = n
		}
	}
	return least
}

// ways are, place by place, the pairs of counts that a node can have of two profiles.
func (f *fleet) ways(grid *placement.Grid, geo *nodeprobe.NodeGeometry, of [2]nodeprobe.Profile, gone func(*nodeprobe.Holder) bool) []map[[2]int]bool {
	var out []map[[2]int]bool
	asis := [2]int{}
	for _, g := range well(geo) {
		x, held, _ := left(g, of[0], gone)
		y, _, _ := left(g, of[1], gone)
		asis[0], asis[1] = asis[0]+x, asis[1]+y
		pairs := map[[2]int]bool{{x, y}: true}
		for a := range of[0].Max + 1 {
			for b := range of[1].Max + 1 {
				if _, ok := grid.Place(placement.Layout{of[0].Name: a, of[1].Name: b}); ok && !held {
					pairs[[2]int{a, b}] = true
				}
			}
		}
		out = append(out, pairs)
	}
	if !f.byName {
		return out
	}
	pairs := map[[2]int]bool{asis: true}
	for _, layout := range f.entries() {
		sum, ok := [2]int{}, true
		for _, g := range geo.Report.GPUs {
			x, held, _ := left(g, of[0], gone)
			y, _, _ := left(g, of[1], gone)
			if maps.Equal(layout, countsOf(g)) {
				if g.Healthy {
					sum[0], sum[1] = sum[0]+x, sum[1]+y
				}
				continue
			}
			ok = ok && g.Healthy && !held
			sum[0], sum[1] = sum[0]+layout[of[0].Name], sum[1]+layout[of[1].Name]
		}
		if ok {
			pairs[sum] = true
		}
	}
	return []map[[2]int]bool{pairs}
}
