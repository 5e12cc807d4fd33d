package nodeprobe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func reportOf(gpus ...Seen) Report {
	r := Report{ObservedAt: metav1.NewTime(noon), Source: SourceNVML}
	for _, g := range gpus {
		r.GPUs = append(r.GPUs, g.GPU)
	}
	return r
}

// TestCheck: one thing is made wrong at a time.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		wrong func(*Report)
		want  []string
	}{
		{func(*Report) {}, nil},
		{func(r *Report) { r.ObservedAt.Time = noon.Add(59 * time.Second) }, nil},
		{func(r *Report) { r.ObservedAt.Time = noon.Add(90 * time.Second) }, []string{"the report is from 1m30s in the future: the clocks differ"}},
		{func(r *Report) { r.GPUs[1].UUID = "GPU-0" }, []string{"GPU 0 (GPU-0): has the UUID of GPU 1 too", "GPU 1 (GPU-0): has the UUID of GPU 0 too"}},
		{func(r *Report) { r.GPUs[1].Index = 0 }, []string{"GPU 0 (GPU-0): its index is there twice", "GPU 0 (GPU-1): its index is there twice"}},
		{func(r *Report) { r.GPUs[1].UUID = "" }, []string{"GPU 1: has no UUID"}},
		{func(r *Report) { r.GPUs[0].Instances[1].UUIDs = []string{"MIG-0d"} }, []string{"GPU 0 (GPU-0): MIG device MIG-0d is in two instances, also on GPU 0"}},
		{func(r *Report) { r.GPUs[0].Profiles[2].Starts = nil }, []string{"GPU 0 (GPU-0): profile 1g.10gb has no starts"}},
		{func(r *Report) { r.GPUs[0].Profiles[2].Starts = []int{-2} }, []string{"GPU 0 (GPU-0): profile 1g.10gb starts at memory slice -2"}},
		{func(r *Report) { r.GPUs[0].Profiles[2].Name = "" }, []string{"GPU 0 (GPU-0): the profile with id 15 has no name"}},
		{func(r *Report) { r.GPUs[0].Profiles[2].Name = "1g.5gb" }, []string{"GPU 0 (GPU-0): profile 1g.5gb is there twice"}},
		{func(r *Report) { r.GPUs[0].Profiles[2].Max = 0 }, []string{"GPU 0 (GPU-0): profile 1g.10gb has 2 memory slices, 1 compute slices and at most 0 instances"}},
		{func(r *Report) { r.GPUs[0].Instances[0].Size = 0 }, []string{"GPU 0 (GPU-0): instance 3 (2g.10gb) has size 0"}},
		{func(r *Report) { r.GPUs[0].Instances[0].Start = -1 }, []string{"GPU 0 (GPU-0): instance 3 (2g.10gb) starts at memory slice -1"}},
		{func(r *Report) { r.GPUs[0].Instances[0].Start = 1 }, []string{"GPU 0 (GPU-0): instance 2g.10gb starts at memory slice 1, the profile starts at [0 2 4]"}},
		{func(r *Report) { r.GPUs[0].Instances[0].Start = 2 }, []string{"GPU 0 (GPU-0): instances 2g.10gb@2 and 1g.5gb@3 overlap"}},
		{func(r *Report) { r.GPUs[0].Instances[0].Start, r.Source = 2, SourceLabels }, nil},
		{func(r *Report) { r.GPUs[0].Instances[2].Size = 3 }, []string{"GPU 0 (GPU-0): instance 3g.20gb@4 covers 3 memory slices, the profile covers 4"}},
		{func(r *Report) { r.GPUs[0].Instances[2].Profile = "5g.20gb" }, []string{`GPU 0 (GPU-0): instance 1 is of profile "5g.20gb", which the GPU does not have`}},
		{func(r *Report) { r.GPUs[0].Profiles, r.GPUs[0].Instances[2].Size = nil, 3 }, []string{"GPU 0 (GPU-0): instance 3g.20gb@4 covers 3 memory slices, the profile covers 4"}},
		{func(r *Report) { r.GPUs[0].MIG.Current = false }, []string{"GPU 0 (GPU-0): has instances while MIG is off"}},
	} {
		g := partedGPU(t, 0)
		g.Profiles = slices.Clone(g.Profiles)
		r := reportOf(g, wholeGPU(1))
		tc.wrong(&r)
		var got []string
		for _, p := range Check(r, noon) {
			got = append(got, p.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// FuzzNodeGeometry: a document never panics, and one that passes has a layout
// that can be: every instance has its slices to itself.
func FuzzNodeGeometry(f *testing.F) {
	for _, s := range []Seen{partedGPU(f, 0), wholeGPU(1)} {
		data, err := json.Marshal(NodeGeometry{Report: reportOf(s)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
		f.Add(strings.ReplaceAll(string(data), `"start":0`, `"start":4`))
		f.Add(strings.ReplaceAll(string(data), `"size":4`, `"size":0`))
		f.Add(strings.ReplaceAll(string(data), `"starts":[0,4]`, `"starts":[]`))
		f.Add(strings.ReplaceAll(string(data), noon.Format(time.RFC3339), "9999-01-01T00:00:00Z"))
	}
	f.Add(`{"report":{"gpus":[{"instances":[{"start":9223372036854775807,"size":1}]}]}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		var geo NodeGeometry
		if json.Unmarshal([]byte(doc), &geo) != nil {
			return
		}
		problems := Check(geo.Report, noon)
		var seen []Seen
		for _, g := range geo.Report.GPUs {
			seen = append(seen, Seen{GPU: g})
		}
		said, _ := new(Reporter).Report(Observation{At: noon, Reading: Reading{GPUs: seen}})
		if left := Check(said, noon); len(problems) == 0 && len(left) > 0 {
			t.Fatalf("%v in a report made of one without problems", left)
		}
		if len(problems) == 0 {
			ownSlices(t, geo.Report)
		}
		ownSlices(t, said)
	})
}

// ownSlices fails when two instances of a GPU share a memory slice.
func ownSlices(t *testing.T, r Report) {
	t.Helper()
	if r.Source == SourceLabels {
		return
	}
	for _, g := range r.GPUs {
		taken := map[int]bool{}
		for _, in := range g.Instances {
			for s := in.Start; s < in.Start+in.Size; s++ {
				if taken[s] {
					t.Fatalf("two instances at memory slice %d: %v", s, g.Instances)
				}
				taken[s] = true
			}
		}
	}
}
