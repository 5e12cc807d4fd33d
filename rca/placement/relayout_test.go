package placement_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// worth is what a layout is to the GPU, by the words of Relayouts: victims who
// get their profile back, idle instances kept, slices covered.
func worth(gpu placement.GPU, l placement.Layout, profile string, n int) []int {
	held, idle := placement.Layout{}, placement.Layout{}
	for _, s := range gpu.Slots {
		if s.Held {
			held[s.Profile]++
		} else {
			idle[s.Profile]++
		}
	}
	var back, kept, covered int
	for q, c := range l {
		p, _ := gpu.Grid.Profile(q)
		covered += c * p.MemorySlices
		if q == profile {
			c -= n
		}
		back += min(c, held[q])
		kept += min(max(0, c-held[q]), idle[q])
	}
	return []int{back, kept, covered}
}

// Every state of the A30, and every state of the A100 without media variants,
// every profile and count: Relayouts lists exactly the other layouts that have
// enough, best first.
func TestRelayouts(t *testing.T) {
	for _, profiles := range [][]nodeprobe.Profile{model(t, "A30-24GB").Profiles, only(model(t, "A100-40GB"), plain)} {
		for k, set := range append(newJudge(profiles).sets(), nil) {
			split := k % (len(set) + 1)
			gpu := gpuOf(t, nodeprobe.Model{Profiles: profiles}, set[:split], set[split:])
			for _, p := range profiles {
				for n := 1; n <= p.Max; n++ {
					relayoutsOf(t, gpu, p.Name, n)
				}
			}
		}
	}
}

func relayoutsOf(t *testing.T, gpu placement.GPU, profile string, n int) {
	t.Helper()
	now := gpu.Layout()
	var want, got []string
	for _, l := range gpu.Grid.Layouts() {
		if l[profile] >= n && !maps.Equal(l, now) {
			want = append(want, l.String())
		}
	}
	var last []int
	for _, l := range gpu.Relayouts(profile, n) {
		is := worth(gpu, l, profile, n)
		if last != nil && slices.Compare(is, last) > 0 {
			t.Fatalf("%v, %d of %s: %v is worth %v, the one before it %v", gpu.Slots, n, profile, l, is, last)
		}
		last = is
		got = append(got, l.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%v, %d of %s: %v, want %v", gpu.Slots, n, profile, got, want)
	}
}

func TestBestRelayout(t *testing.T) {
	for _, c := range []struct {
		name    string
		gpu     placement.GPU
		profile string
		want    placement.Layout
	}{
		{"three small holders come back", a100(t, on("1g.5gb", 0), on("1g.5gb", 1), on("1g.5gb", 5)), "3g.20gb",
			placement.Layout{"3g.20gb": 1, "1g.5gb": 4}},
		{"a holder of the profile asked for comes back", a100(t, on("3g.20gb", 0), on("1g.5gb", 4)), "3g.20gb",
			placement.Layout{"3g.20gb": 2}},
		{"idle instances are kept", a100(t, on("1g.5gb", 0), idle("2g.10gb", 2), idle("1g.5gb", 5)), "3g.20gb",
			placement.Layout{"3g.20gb": 1, "2g.10gb": 1, "1g.5gb": 2}},
		{"the whole board", a100(t, on("1g.5gb", 0)), "7g.40gb", placement.Layout{"7g.40gb": 1}},
	} {
		got := c.gpu.Relayouts(c.profile, 1)
		if len(got) == 0 || !maps.Equal(got[0], c.want) {
			t.Errorf("%s: %v, want %v first", c.name, got, c.want)
		}
	}
	if got := a100(t).Relayouts("3g.20gb", 3); len(got) != 0 {
		t.Errorf("three 3g: %v", got)
	}
	if got := a100(t).Relayouts("9g.90gb", 1); got != nil {
		t.Errorf("no such profile: %v", got)
	}
}
