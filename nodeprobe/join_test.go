package nodeprobe

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var nobody *Holder

func holder(pod string) Holder { return Holder{Namespace: "ml", Pod: pod, Container: "main"} }

// partedGPU is an A100-40GB with 3g.20gb@4, 2g.10gb@0 and 1g.5gb@3, minor 10+index.
func partedGPU(t testing.TB, index int) Seen {
	t.Helper()
	m, ok := ModelOf("NVIDIA A100-SXM4-40GB")
	if !ok {
		t.Fatal("no A100")
	}
	id := fmt.Sprint(index)
	return Seen{Minor: 10 + index, GPU: GPU{Index: index, UUID: "GPU-" + id, Product: m.Names[0], MemoryMiB: 40960, Healthy: true,
		MIG: &MIGMode{Current: true, Pending: true}, Profiles: m.Profiles, Instances: []Instance{
			{Profile: "2g.10gb", ID: 3, Start: 0, Size: 2, UUIDs: []string{"MIG-" + id + "a"}},
			{Profile: "1g.5gb", ID: 9, Start: 3, Size: 1, UUIDs: []string{"MIG-" + id + "b", "MIG-" + id + "c"}},
			{Profile: "3g.20gb", ID: 1, Start: 4, Size: 4, UUIDs: []string{"MIG-" + id + "d"}},
		}}}
}

func wholeGPU(index int) Seen {
	return Seen{Minor: 10 + index, GPU: GPU{Index: index, UUID: fmt.Sprintf("GPU-%d", index), Product: "NVIDIA L4", MemoryMiB: 23034, Healthy: true}}
}

// TestJoin: GPU 0 is partitioned, GPU 1 is whole. The first three holders are
// those of its instances by start.
func TestJoin(t *testing.T) {
	a, b, unknown := holder("a"), holder("b"), Holder{Unknown: true}
	aside := Holder{Namespace: "ml", Pod: "a", Container: "aside"}
	for name, tc := range map[string]struct {
		held      []Allocation
		err       error
		instances [3]*Holder
		parted    []Holder // of GPU 0 itself
		whole     []Holder
		stray     int
	}{
		"nothing is held":                        {},
		"by UUID":                                {held: []Allocation{{Holder: a, Name: "MIG-0a"}, {Holder: b, Name: "GPU-1"}}, instances: [3]*Holder{&a}, whole: []Holder{b}},
		"second compute instance":                {held: []Allocation{{Holder: a, Name: "MIG-0c"}}, instances: [3]*Holder{1: &a}},
		"as drivers before R470 say":             {held: []Allocation{{Holder: a, Name: "MIG-GPU-0/1/0"}}, instances: [3]*Holder{2: &a}},
		"shares of a whole GPU":                  {held: []Allocation{{Holder: b, Name: "GPU-1::1"}, {Holder: a, Name: "GPU-1::0"}, {Holder: a, Name: "GPU-1::2"}}, whole: []Holder{a, b}},
		"an instance that two pods share":        {held: []Allocation{{Holder: a, Name: "MIG-0a::0"}, {Holder: b, Name: "MIG-0a::1"}}, instances: [3]*Holder{&unknown}},
		"an instance that one pod holds twice":   {held: []Allocation{{Holder: aside, Name: "MIG-0b"}, {Holder: a, Name: "MIG-0c"}}, instances: [3]*Holder{1: &aside}},
		"DRA":                                    {held: []Allocation{{Holder: a, Name: "gpu-10-mig-3g20gb-9-4", DRA: true}, {Holder: b, Name: "gpu-11", DRA: true}}, instances: [3]*Holder{2: &a}, whole: []Holder{b}},
		"DRA as v25.8 says":                      {held: []Allocation{{Holder: a, Name: "gpu-10-mig-14-0-2", DRA: true}}, instances: [3]*Holder{&a}},
		"DRA, the place is another's":            {held: []Allocation{{Holder: a, Name: "gpu-10-mig-1g5gb-19-0", DRA: true}, {Holder: b, Name: "MIG-0d"}}, instances: [3]*Holder{&unknown, &unknown, &b}, stray: 1},
		"DRA, the size is another's":             {held: []Allocation{{Holder: a, Name: "gpu-10-mig-14-0-1", DRA: true}}, instances: [3]*Holder{&unknown, &unknown, &unknown}, stray: 1},
		"DRA, the place is empty":                {held: []Allocation{{Holder: a, Name: "gpu-10-mig-1g5gb-19-2", DRA: true}}, instances: [3]*Holder{&unknown, &unknown, &unknown}, stray: 1},
		"DRA, an instance on a whole GPU":        {held: []Allocation{{Holder: a, Name: "gpu-11-mig-1g5gb-19-2", DRA: true}}, whole: []Holder{unknown}, stray: 1},
		"a GPU that was partitioned under a pod": {held: []Allocation{{Holder: a, Name: "GPU-0"}, {Holder: b, Name: "MIG-0a"}}, instances: [3]*Holder{&b, &unknown, &unknown}, parted: []Holder{a}},
		"devices of before and elsewhere":        {held: []Allocation{{Holder: a, Name: "MIG-gone"}, {Holder: a, Name: "GPU-7"}, {Holder: a, Name: "gpu-3", DRA: true}}, stray: 3},
		"a name that could be any":               {held: []Allocation{{Holder: a, Name: "nvidia0/gi3"}, {Holder: b, Name: "MIG-0a"}}, instances: [3]*Holder{&b, &unknown, &unknown}, whole: []Holder{unknown}, stray: 1},
		"the kubelet does not say":               {err: errors.New("no socket"), instances: [3]*Holder{&unknown, &unknown, &unknown}, whole: []Holder{unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			gpus := []Seen{partedGPU(t, 0), wholeGPU(1)}
			want := []GPU{partedGPU(t, 0).GPU, wholeGPU(1).GPU}
			for k, h := range tc.instances {
				want[0].Instances[k].Holder = h
			}
			want[0].Holders, want[1].Holders = tc.parted, tc.whole
			got, stray := Join(gpus, tc.held, tc.err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if len(stray) != tc.stray {
				t.Errorf("stray: %v", stray)
			}
			if gpus[0].Instances[0].Holder != nobody {
				t.Error("what was read is changed")
			}
		})
	}
}

// TestJoinKeepsUnknown: what the driver did not tell is not free because the
// kubelet names nobody.
func TestJoinKeepsUnknown(t *testing.T) {
	g, unlisted := partedGPU(t, 0), partedGPU(t, 1)
	g.Instances[0].UUIDs, g.Instances[0].Holder = nil, &Holder{Unknown: true}
	unlisted.Instances, unlisted.Unlisted = nil, errors.New("no permission")
	got, _ := Join([]Seen{g, unlisted}, nil, nil)
	if h := got[0].Instances[0].Holder; h == nil || !h.Unknown {
		t.Errorf("instance without devices: %+v", h)
	}
	if diff := cmp.Diff([]Holder{{Unknown: true}}, got[1].Holders); diff != "" {
		t.Error(diff)
	}
	got, _ = Join([]Seen{g}, []Allocation{{Holder: holder("a"), Name: "gpu-10-mig-2g10gb-14-0", DRA: true}}, nil)
	if diff := cmp.Diff(new(holder("a")), got[0].Instances[0].Holder); diff != "" {
		t.Error(diff)
	}
}

// TestTooManyHolders: one more than the API takes, and the rest is not hidden.
func TestTooManyHolders(t *testing.T) {
	var held []Allocation
	for i := range 65 {
		held = append(held, Allocation{Holder: holder(fmt.Sprintf("p%02d", i)), Name: fmt.Sprintf("GPU-0::%d", i)})
	}
	got, _ := Join([]Seen{wholeGPU(0)}, held, nil)
	if h := got[0].Holders; len(h) != 64 || !h[63].Unknown || h[62].Pod != "p62" {
		t.Errorf("%d holders, last %+v", len(h), h[len(h)-1])
	}
}
