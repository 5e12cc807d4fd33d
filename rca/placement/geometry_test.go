package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

func model(t testing.TB, id string) nodeprobe.Model {
	t.Helper()
	for _, m := range nodeprobe.Models() {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("no model %s", id)
	return nodeprobe.Model{}
}

func all(nodeprobe.Profile) bool { return true }

func plain(p nodeprobe.Profile) bool { return !strings.ContainsAny(p.Name, "+-") }

// core leaves the media variants and the double-memory 1g out.
func core(p nodeprobe.Profile) bool {
	return plain(p) && (p.ComputeSlices != 1 || p.MemorySlices != 2)
}

func only(m nodeprobe.Model, keep func(nodeprobe.Profile) bool) []nodeprobe.Profile {
	return slices.DeleteFunc(slices.Clone(m.Profiles), func(p nodeprobe.Profile) bool { return !keep(p) })
}

func instance(p nodeprobe.Profile, start int) nodeprobe.Instance {
	return nodeprobe.Instance{Profile: p.Name, Start: start, Size: p.MemorySlices,
		Holder: &nodeprobe.Holder{Namespace: "a", Pod: fmt.Sprint("p", start), Container: "c"}}
}

// readSets are all sets of held instances that Read accepts, without the empty
// one.
func readSets(profiles []nodeprobe.Profile) []placement.GPU {
	var instances []nodeprobe.Instance
	for _, p := range profiles {
		for _, s := range p.Starts {
			instances = append(instances, instance(p, s))
		}
	}
	var out []placement.GPU
	var walk func(from int, set []nodeprobe.Instance)
	walk = func(from int, set []nodeprobe.Instance) {
		for k := from; k < len(instances); k++ {
			next := append(slices.Clone(set), instances[k])
			if gpu, err := placement.Read("n", nodeprobe.GPU{Profiles: profiles, Instances: next}); err == nil {
				out = append(out, gpu)
				walk(k+1, next)
			}
		}
	}
	walk(0, nil)
	return out
}

func maximal(gpu placement.GPU) bool {
	return !slices.ContainsFunc(gpu.Grid.Profiles(), func(p nodeprobe.Profile) bool { return gpu.Fit(p.Name).Start >= 0 })
}

// The 19 maximal configurations of A100 are those of NVIDIA's MIG user guide;
// every figure is also counted by the judge.
func TestCounts(t *testing.T) {
	cases := []struct {
		model string
		keep  func(nodeprobe.Profile) bool
		want  counts // 0: only the judge says
	}{
		{"A100-40GB", core, counts{297, 19, 37, 14}},
		{"A100-40GB", plain, counts{722, 78, 77, 38}},
		{"A100-40GB", all, counts{2318, 239, 127, 64}},
		{"H200-141GB", all, counts{2318, 239, 127, 64}},
		{"A30-24GB", core, counts{25, 5, 9, 0}},
		{"A30-24GB", all, counts{83, 21, 21, 0}},
		{"RTX-PRO-6000-Blackwell-96GB", core, counts{25, 5, 9, 0}},
		{"RTX-PRO-6000-Blackwell-96GB", all, counts{1248, 606, 171, 0}},
	}
	for _, c := range cases {
		profiles := only(model(t, c.model), c.keep)
		judged := newJudge(profiles).counts()
		if c.want.maximalLayouts == 0 {
			c.want.maximalLayouts = judged.maximalLayouts
		}
		layouts, most := map[string]bool{}, map[string]bool{}
		var got counts
		for _, gpu := range readSets(profiles) {
			got.sets++
			layouts[gpu.Layout().String()] = true
			if maximal(gpu) {
				got.maximal++
				most[gpu.Layout().String()] = true
			}
		}
		got.layouts, got.maximalLayouts = len(layouts), len(most)
		if got != c.want || judged != c.want {
			t.Errorf("%s with %d profiles: %+v, judged %+v, want %+v", c.model, len(profiles), got, judged, c.want)
		}
		g, err := placement.NewGrid(profiles)
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		for _, l := range g.Layouts() {
			listed[l.String()] = true
		}
		if !maps.Equal(listed, layouts) || len(g.Layouts()) != len(listed) {
			t.Errorf("%s with %d profiles: %d layouts listed, %d exist", c.model, len(profiles), len(g.Layouts()), len(layouts))
		}
	}
}

// NVIDIA's figure of A100 configurations, row by row.
func TestMaximalConfigurationsOfA100(t *testing.T) {
	want := []string{
		"7@0",
		"4@0 3@4", "4@0 2@4 1@6", "4@0 1@4 1@5 1@6",
		"3@0 3@4", "3@0 2@4 1@6", "3@0 1@4 1@5 1@6",
		"2@0 2@2 3@4", "2@0 1@2 1@3 3@4", "1@0 1@1 2@2 3@4", "1@0 1@1 1@2 1@3 3@4",
		"2@0 2@2 2@4 1@6", "2@0 2@2 1@4 1@5 1@6", "2@0 1@2 1@3 2@4 1@6", "2@0 1@2 1@3 1@4 1@5 1@6",
		"1@0 1@1 2@2 2@4 1@6", "1@0 1@1 2@2 1@4 1@5 1@6", "1@0 1@1 1@2 1@3 2@4 1@6", "1@0 1@1 1@2 1@3 1@4 1@5 1@6",
	}
	var got []string
	for _, gpu := range readSets(only(model(t, "A100-40GB"), core)) {
		if maximal(gpu) {
			var parts []string
			for _, s := range gpu.Slots {
				parts = append(parts, fmt.Sprintf("%c@%d", s.Profile[0], s.Start))
			}
			got = append(got, strings.Join(parts, " "))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("maximal configurations\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every layout can be placed legally, and made one instance after another in
// the order given, each wherever most room is left; what does not exist cannot
// be placed.
func TestPlaceEveryLayout(t *testing.T) {
	for _, m := range nodeprobe.Models() {
		j := newJudge(m.Profiles)
		exist := map[string]bool{}
		for _, set := range j.sets() {
			l := placement.Layout{}
			for _, a := range set {
				l[m.Profiles[a.profile].Name]++
			}
			exist[l.String()] = true
		}
		g, err := placement.NewGrid(m.Profiles)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Layouts()) != len(exist) {
			t.Errorf("%s: %d layouts, %d exist", m.ID, len(g.Layouts()), len(exist))
		}
		for _, l := range g.Layouts() {
			placed, ok := g.Place(l)
			var set []at
			made := placement.GPU{Grid: g}
			for _, s := range placed {
				set = append(set, at{slices.IndexFunc(m.Profiles, func(p nodeprobe.Profile) bool { return p.Name == s.Profile }), s.Start})
				start := made.Fit(s.Profile).Start
				if start < 0 {
					t.Fatalf("%s, %v: no start left for %s after %v", m.ID, l, s.Profile, made.Slots)
				}
				made.Slots = append(made.Slots, placement.Slot{Profile: s.Profile, Start: start, Size: s.Size, Held: true})
			}
			if !ok || !j.legal(set) || !maps.Equal(made.Layout(), l) || !exist[l.String()] {
				t.Fatalf("%s, %v: placed %v %v", m.ID, l, placed, ok)
			}
			for _, p := range m.Profiles {
				next := maps.Clone(l)
				next[p.Name]++
				if _, ok := g.Place(next); ok != exist[next.String()] {
					t.Fatalf("%s, %v: placed %v, exists %v", m.ID, next, ok, exist[next.String()])
				}
			}
		}
	}
}

func TestPlaceRefuses(t *testing.T) {
	g, err := placement.GridOf(nodeprobe.GPU{Product: a100Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []placement.Layout{
		{"9g.90gb": 1}, {"1g.5gb": 8}, {"1g.5gb": -1}, {"1g.5gb": 1 << 40}, {"4g.20gb": 1, "7g.40gb": 1},
		{"1g.5gb+me": 2}, {"1g.5gb+me": 1, "1g.5gb.me": 1}, {"3g.20gb": 2, "1g.5gb": 1},
	} {
		if placed, ok := g.Place(l); ok || placed != nil {
			t.Errorf("%v placed as %v", l, placed)
		}
	}
	if placed, ok := g.Place(placement.Layout{"1g.5gb.me": 1}); !ok || !slices.Equal(placed, []placement.Slot{{Profile: "1g.5gb+me", Start: 6, Size: 1}}) {
		t.Errorf("the device plugin's spelling: %v %v", placed, ok)
	}
}
