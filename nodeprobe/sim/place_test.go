package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// illegal says what is wrong with a layout, judged by the model's table alone.
func illegal(m nodeprobe.Model, placed []Placed) string {
	taken, counts, compute := map[int]bool{}, map[string]int{}, 0
	for _, pl := range placed {
		p, ok := m.Profile(pl.Profile)
		if !ok || !slices.Contains(p.Starts, pl.Start) {
			return fmt.Sprintf("%s cannot start at %d", pl.Profile, pl.Start)
		}
		for s := pl.Start; s < pl.Start+p.MemorySlices; s++ {
			if taken[s] || s >= m.MemorySlices {
				return fmt.Sprintf("slice %d of %s", s, pl.Profile)
			}
			taken[s] = true
		}
		compute += p.ComputeSlices
		if counts[p.Name]++; counts[p.Name] > p.Max {
			return fmt.Sprintf("%d of %s", counts[p.Name], p.Name)
		}
	}
	if compute > m.ComputeSlices {
		return fmt.Sprintf("%d compute slices of %d", compute, m.ComputeSlices)
	}
	return ""
}

// possible tries every start of every instance.
func possible(m nodeprobe.Model, counts map[string]int, placed []Placed) bool {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] == 0 {
			continue
		}
		rest := maps.Clone(counts)
		rest[name]--
		p, _ := m.Profile(name)
		for _, start := range p.Starts {
			if n := len(placed); n > 0 && placed[n-1].Profile == name && start < placed[n-1].Start {
				continue // alike ones are tried in one order
			}
			next := append(slices.Clone(placed), Placed{p.Name, start})
			if illegal(m, next) == "" && possible(m, rest, next) {
				return true
			}
		}
		return false
	}
	return true
}

// Pairs of profiles in every count on every model: Place finds a legal layout of
// those counts exactly when there is one.
func TestPlaceIsLegal(t *testing.T) {
	fit, no := 0, 0
	for _, m := range nodeprobe.Models() {
		for i, a := range m.Profiles {
			for _, b := range m.Profiles[i+1:] {
				for na := range a.Max + 1 {
					for nb := range b.Max + 1 {
						counts := map[string]int{a.Name: na, b.Name: nb}
						placed, err := Place(m.ID, counts)
						if want := possible(m, counts, nil); want != (err == nil) {
							t.Fatalf("%s %v: %v, %v, want possible %v", m.ID, counts, placed, err, want)
						}
						if err != nil {
							no++
							continue
						}
						fit++
						if why := illegal(m, placed); why != "" || len(placed) != na+nb {
							t.Fatalf("%s %v: %v: %s", m.ID, counts, placed, why)
						}
					}
				}
			}
		}
	}
	t.Logf("%d counts placed, %d refused", fit, no)
	if fit == 0 || no == 0 {
		t.Error("nothing was tried")
	}
}

func TestAllIsFull(t *testing.T) {
	for _, m := range nodeprobe.Models() {
		for _, p := range m.Profiles {
			if all := All(m.ID, p.Name); len(all) != p.Max || illegal(m, all) != "" {
				t.Errorf("%s all of %s: %v %s, want %d", m.ID, p.Name, all, illegal(m, all), p.Max)
			}
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	for _, counts := range []map[string]int{{"9g.90gb": 1}, {"1g.5gb": 8}, {"4g.20gb": 1, "7g.40gb": 1}} {
		if placed, err := Place("A100-40GB", counts); err == nil {
			t.Errorf("%v: %v", counts, placed)
		}
	}
}

func asking(name, resourceName string, count int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(resourceName): *resource.NewQuantity(count, resource.DecimalSI)}}}}}}
}

// holders maps "gpu:start" of each held instance to its pod.
func holders(geo *nodeprobe.NodeGeometry) map[string]string {
	out := map[string]string{}
	for _, g := range geo.Report.GPUs {
		for _, in := range g.Instances {
			if in.Holder != nil {
				out[fmt.Sprint(g.Index, ":", in.Start)] = in.Holder.Pod
			}
		}
		for _, h := range g.Holders {
			out[fmt.Sprint(g.Index, ":whole")] = h.Pod
		}
	}
	return out
}

func TestAssign(t *testing.T) {
	n := Node{Name: "gpu-1", Model: "A100-40GB", GPUs: 3, MIGOff: []int{2}, Layouts: [][]Placed{All("A100-40GB", "2g.10gb"), All("A100-40GB", "2g.10gb")}}
	const small = "nvidia.com/mig-2g.10gb"
	a, b, two, whole := asking("a", small, 1), asking("b", small, 1), asking("two", small, 2), asking("whole", "nvidia.com/gpu", 1)
	geo := n.Geometry(time.Unix(0, 0))
	step := func(what string, pods []*corev1.Pod, spread bool, changes bool, want map[string]string, refusedPods ...string) {
		t.Helper()
		refused, changed := assign(geo, pods, "mixed", spread)
		var names []string
		for p := range refused {
			names = append(names, p.Name)
		}
		if got := holders(geo); !maps.Equal(got, want) || changed != changes || !slices.Equal(names, refusedPods) {
			t.Errorf("%s: %v, changed %v, refused %v\nwant %v, %v, %v", what, got, changed, refused, want, changes, refusedPods)
		}
	}
	full := map[string]string{"0:0": "a", "0:2": "b", "0:4": "two", "1:0": "two", "2:whole": "whole"}
	step("each its own", []*corev1.Pod{a, b, two, whole}, false, true, full)
	step("again", []*corev1.Pod{a, b, two, whole}, false, false, full)
	step("one is deleted", []*corev1.Pod{a, two, whole}, false, true, map[string]string{"0:0": "a", "0:4": "two", "1:0": "two", "2:whole": "whole"})
	next := asking("next", small, 1)
	step("its place is given on", []*corev1.Pod{a, two, whole, next}, false, true, map[string]string{"0:0": "a", "0:2": "next", "0:4": "two", "1:0": "two", "2:whole": "whole"})
	second := asking("second", "nvidia.com/gpu", 1)
	step("nothing left", []*corev1.Pod{a, two, whole, next, second}, false, false, map[string]string{"0:0": "a", "0:2": "next", "0:4": "two", "1:0": "two", "2:whole": "whole"}, "second")
	step("everyone is gone", nil, false, true, map[string]string{})
	step("spread", []*corev1.Pod{a, b}, true, true, map[string]string{"0:0": "a", "1:0": "b"})
}
