package capacity

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// Random clusters: the counts are those of the contract, worked out here from
// the reports alone, and no fewer evictions would do.
func TestCapacityOfRandomClusters(t *testing.T) {
	clusters := 2000
	if testing.Short() {
		clusters = 200
	}
	r := rand.New(rand.NewPCG(7, 8))
	evicting := 0
	for i := range clusters {
		f := randomFleet(t, r)
		if f.byName = i%2 > 0; f.byName {
			f.st.ConfigMaps, f.st.ClusterPolicies = nil, nil
		}
		for range 2 {
			p := f.a100.Profiles[r.IntN(len(f.a100.Profiles))]
			asked := 1 + r.IntN(8)
			got := capacityOf(t, f.st, view.MIGPrefix+view.Spelled(p.Name), asked)
			now, repartition, hardware := f.counts(p)
			if got.Now > got.Repartition || got.Repartition > got.Hardware {
				t.Fatalf("%d, %d, %d do not rise", got.Now, got.Repartition, got.Hardware)
			}
			if got.Now != now || got.Repartition != repartition || got.Hardware != hardware {
				t.Fatalf("%s: %d, %d, %d; counted %d, %d, %d\n%+v", p.Name, got.Now, got.Repartition, got.Hardware, now, repartition, hardware, got)
			}
			fits, evictions := f.fewest(p, asked)
			if got.Evict.Fits != fits || len(got.Evict.Evictions) != evictions || !got.Evict.Proof.Exact {
				t.Fatalf("%d %s: %+v; %d fit with %d evictions", asked, p.Name, got.Evict, fits, evictions)
			}
			if evictions > 0 {
				evicting++
			}
		}
	}
	t.Logf("%d answers, %d of them with evictions", 2*clusters, evicting)
}

// randomFleet has pods that all cost the same, so that the fewest are the best.
func randomFleet(t testing.TB, r *rand.Rand) *fleet {
	t.Helper()
	f := newFleet(t)
	grid, err := placement.NewGrid(f.a100.Profiles)
	if err != nil {
		t.Fatal(err)
	}
	layouts := grid.Layouts()
	for i := range 1 + r.IntN(4) {
		n := f.node(fmt.Sprint("n", i))
		var gpus []nodeprobe.GPU
		for g := range 1 + r.IntN(2) {
			slots, _ := grid.Place(layouts[r.IntN(len(layouts))])
			var gpu nodeprobe.GPU
			for _, s := range slots {
				holder := ""
				if name := fmt.Sprintf("p%d-%d-%d", i, g, s.Start); r.IntN(3) == 0 && len(f.st.Pods) < 9 {
					f.pod(name, n.Name, view.MIGPrefix+view.Spelled(s.Profile), 1)
					holder = name
				}
				gpu.Instances = append(gpu.Instances, f.instance(s.Profile, s.Start, holder))
			}
			gpus = append(gpus, gpu)
		}
		geo := f.report(n, gpus...)
		for k := range gpus[0].Instances {
			if in := &gpus[0].Instances[k]; in.Holder == nil && r.IntN(8) == 0 {
				in.Holder = &nodeprobe.Holder{Unknown: true}
			}
		}
		for k := range geo.Report.GPUs { // the device plugin offers all of a sick one all the same
			geo.Report.GPUs[k].Healthy = r.IntN(6) > 0
		}
		switch r.IntN(8) {
		case 0:
			n.Spec.Unschedulable = true
		case 1:
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		case 2:
			geo.Report.ObservedAt = metav1.NewTime(capacityNow.Add(-time.Hour))
		default:
			f.trusted = append(f.trusted, geo)
		}
	}
	return f
}

func (f *fleet) counts(p nodeprobe.Profile) (now, repartition, hardware int) {
	stay := func(*nodeprobe.Holder) bool { return false }
	for _, geo := range f.trusted {
		for _, g := range well(geo) {
			idle, _, slices := left(g, p, stay)
			now += idle
			hardware += fitting(p, slices)
		}
		repartition += f.remade(geo, p, stay)
	}
	return now, repartition, hardware
}

// remade is what a node has of a profile once some holders are gone, by what MIG manager can
// be asked for: a layout for each GPU, or one of the operator's own entries for all of them.
func (f *fleet) remade(geo *nodeprobe.NodeGeometry, p nodeprobe.Profile, gone func(*nodeprobe.Holder) bool) int {
	asis, each := 0, 0
	for _, g := range well(geo) {
		idle, held, _ := left(g, p, gone)
		asis += idle
		if held {
			each += idle
		} else {
			each += fitting(p, 0)
		}
	}
	if !f.byName {
		return each
	}
	most := asis
	for _, layout := range f.entries() {
		sum, ok := 0, true
		for _, g := range geo.Report.GPUs {
			idle, held, _ := left(g, p, gone)
			if maps.Equal(layout, countsOf(g)) {
				if g.Healthy {
					sum += idle
				}
				continue
			}
			ok = ok && g.Healthy && !held
			sum += layout[p.Name]
		}
		if ok {
			most = max(most, sum)
		}
	}
	return most
}

// entries are what the operator generates: as many of one profile as there can be, and
// all-balanced (gpu-operator, mig-config of an A100 of 40 GB).
func (f *fleet) entries() []map[string]int {
	out := []map[string]int{{"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}}
	for _, p := range f.a100.Profiles {
		out = append(out, map[string]int{p.Name: p.Max})
	}
	return out
}

func countsOf(g nodeprobe.GPU) map[string]int {
	out := map[string]int{}
	for _, in := range g.Instances {
		out[in.Profile]++
	}
	return out
}

// well are the GPUs that are not sick.
func well(geo *nodeprobe.NodeGeometry) []nodeprobe.GPU {
	return slices.DeleteFunc(slices.Clone(geo.Report.GPUs), func(g nodeprobe.GPU) bool { return !g.Healthy })
}

// left is a GPU once some holders are gone: idle instances of the profile,
// whether anybody is left, and the slices they hold.
func left(g nodeprobe.GPU, p nodeprobe.Profile, gone func(*nodeprobe.Holder) bool) (idle int, held bool, slices uint64) {
	media := false
	for _, in := range g.Instances {
		switch {
		case in.Holder != nil && !gone(in.Holder):
			held = true
			slices |= (1<<in.Size - 1) << in.Start
			media = media || in.Profile == p.Name
		case in.Profile == p.Name:
			idle++
		}
	}
	if media && p.Max == 1 {
		slices = 1<<8 - 1 // the one that there may be is held
	}
	return idle, held, slices
}

func fitting(p nodeprobe.Profile, held uint64) int {
	n := 0
	for _, s := range p.Starts {
		if m := uint64(1<<p.MemorySlices-1) << s; n < p.Max && held&m == 0 {
			held |= m
			n++
		}
	}
	return n
}

// fewest tries every set of pods.
func (f *fleet) fewest(p nodeprobe.Profile, asked int) (fits, evictions int) {
	for set := range 1 << len(f.st.Pods) {
		gone := func(h *nodeprobe.Holder) bool {
			i := slices.IndexFunc(f.st.Pods, func(pod *corev1.Pod) bool { return pod.Name == h.Pod })
			return i >= 0 && set>>i&1 > 0
		}
		sum := 0
		for _, geo := range f.trusted {
			sum += f.remade(geo, p, gone)
		}
		if n, sum := bits.OnesCount(uint(set)), min(sum, asked); sum > fits || sum == fits && n < evictions {
			fits, evictions = sum, n
		}
	}
	return fits, evictions
}
