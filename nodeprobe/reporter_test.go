package nodeprobe

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func lines(problems []Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

func observe(at time.Time, gpus ...Seen) Observation {
	return Observation{At: at, Reading: Reading{DriverVersion: "580", GPUs: gpus}}
}

// unknownHolders is the same layout with nobody known.
func unknownHolders(in []Instance) (out []Instance) {
	for _, i := range in {
		i.Holder = &Holder{Unknown: true}
		out = append(out, i)
	}
	return out
}

// TestReport: what was read, joined, in order, with the time when looking began.
func TestReport(t *testing.T) {
	o := observe(noon, wholeGPU(1), partedGPU(t, 0))
	o.Held = []Allocation{{Holder: holder("a"), Name: "MIG-0a"}, {Holder: holder("b"), Name: "MIG-gone"}}
	got, problems := new(Reporter).Report(o)
	g := partedGPU(t, 0).GPU
	g.Instances[0].Holder = new(holder("a"))
	if diff := cmp.Diff(Report{ObservedAt: metav1.NewTime(noon), Source: SourceNVML, DriverVersion: "580", GPUs: []GPU{g, wholeGPU(1).GPU}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"device MIG-gone, held by ml/b, is on no GPU that was read"}, lines(problems)); diff != "" {
		t.Error(diff)
	}
}

// TestNeverEmpty: what the driver would not say, or says and cannot be, does not
// read as free, neither the first time nor after the layout was known.
func TestNeverEmpty(t *testing.T) {
	none := func(s *Seen, says string) { s.Instances, s.Unlisted = nil, errors.New(says) }
	for name, tc := range map[string]struct {
		spoil             func(*Seen)
		problem           string
		profiles, healthy bool
	}{
		"no permission":    {func(s *Seen) { none(s, "does not tell its instances: no permission") }, "GPU 0 (GPU-0): does not tell its instances: no permission", true, true},
		"mode not told":    {func(s *Seen) { none(s, "does not tell its MIG mode"); s.MIG, s.Profiles = nil, nil }, "GPU 0 (GPU-0): does not tell its MIG mode", false, true},
		"overlap":          {func(s *Seen) { s.Instances[0].Start = 2 }, "GPU 0 (GPU-0): instances 2g.10gb@2 and 1g.5gb@3 overlap", true, true},
		"size 0":           {func(s *Seen) { s.Instances[2].Size = 0 }, "GPU 0 (GPU-0): instance 1 (3g.20gb) has size 0", true, true},
		"impossible start": {func(s *Seen) { s.Instances[2].Start = 3 }, "GPU 0 (GPU-0): instance 3g.20gb starts at memory slice 3, the profile starts at [0 4]", true, true},
		"a twin":           {func(s *Seen) { s.Instances[1].UUIDs = []string{"MIG-0a"} }, "GPU 0 (GPU-0): MIG device MIG-0a is in two instances, also on GPU 0", true, true},
		"gone from the bus": {func(s *Seen) {
			*s = Seen{GPU: GPU{Index: 0}, Minor: -1, Unlisted: errors.New("cannot be opened: the GPU is lost")}
		}, "GPU 0: cannot be opened: the GPU is lost", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := partedGPU(t, 0)
			tc.spoil(&spoiled)
			first, problems := new(Reporter).Report(observe(noon, spoiled, wholeGPU(1)))
			if diff := cmp.Diff([]string{tc.problem}, lines(problems)); diff != "" {
				t.Error(diff)
			}
			if first.Source != SourceLabels {
				t.Errorf("the first report claims positions: source %s", first.Source)
			}
			for _, g := range first.GPUs {
				if g.Index == 0 && (len(g.Instances) > 0 || len(g.Holders) != 1 || !g.Holders[0].Unknown) {
					t.Errorf("%+v", g)
				}
			}

			r := new(Reporter)
			r.Report(observe(noon.Add(-time.Hour), partedGPU(t, 0), wholeGPU(1)))
			for range 2 { // what was remembered is not worn out
				later, problems := r.Report(observe(noon, spoiled, wholeGPU(1)))
				want := partedGPU(t, 0).GPU
				want.Instances, want.Holders, want.Healthy = unknownHolders(want.Instances), []Holder{{Unknown: true}}, tc.healthy
				if !tc.profiles {
					want.Profiles = nil
				}
				if diff := cmp.Diff(Report{ObservedAt: metav1.NewTime(noon), Source: SourceNVML, DriverVersion: "580", GPUs: []GPU{want, wholeGPU(1).GPU}}, later); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{tc.problem}, lines(problems)); diff != "" {
					t.Error(diff)
				}
			}
			back, _ := r.Report(observe(noon, partedGPU(t, 0), wholeGPU(1)))
			if diff := cmp.Diff(Report{ObservedAt: metav1.NewTime(noon), Source: SourceNVML, DriverVersion: "580", GPUs: []GPU{partedGPU(t, 0).GPU, wholeGPU(1).GPU}}, back); diff != "" {
				t.Errorf("it does not recover: %s", diff)
			}
		})
	}
}

// TestHidden: GPUs that the library leaves out are no GPUs that do not exist.
func TestHidden(t *testing.T) {
	o := observe(noon, wholeGPU(1))
	o.Reading.Hidden = 3
	got, problems := new(Reporter).Report(o)
	if diff := cmp.Diff(Report{ObservedAt: metav1.NewTime(noon), Source: SourceLabels, DriverVersion: "580", GPUs: []GPU{wholeGPU(1).GPU}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"GPUs of the kernel that the driver does not list: 3; can their /dev/nvidia<n> be opened here?"}, lines(problems)); diff != "" {
		t.Error(diff)
	}
	none, problems := new(Reporter).Report(observe(noon))
	if none.Source != SourceLabels || len(none.GPUs) != 0 || len(problems) != 0 {
		t.Errorf("a driver that lists nothing: %+v, %v", none, problems)
	}
}

// TestOldLayoutOfAnotherMode is none: MIG was off when it was known.
func TestOldLayoutOfAnotherMode(t *testing.T) {
	off, on := partedGPU(t, 0), partedGPU(t, 0)
	off.MIG, off.Instances = &MIGMode{}, nil
	on.Instances, on.Unlisted = nil, errors.New("no permission")
	r := new(Reporter)
	if got, _ := r.Report(observe(noon, off)); got.Source != SourceNVML {
		t.Fatal(got)
	}
	if got, _ := r.Report(observe(noon, on)); got.Source != SourceLabels || !got.GPUs[0].Holders[0].Unknown {
		t.Errorf("%+v", got)
	}
}

// TestBadProfiles are left out, with the reason; the layout is then judged by
// what is known of the model.
func TestBadProfiles(t *testing.T) {
	s := partedGPU(t, 0)
	s.Profiles = slices.Clone(s.Profiles)
	s.Profiles[3].Starts = nil
	got, problems := new(Reporter).Report(observe(noon, s))
	want := partedGPU(t, 0).GPU
	want.Profiles = nil
	if diff := cmp.Diff([]GPU{want}, got.GPUs); diff != "" || got.Source != SourceNVML {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"GPU 0 (GPU-0): profile 2g.10gb has no starts"}, lines(problems)); diff != "" {
		t.Error(diff)
	}
}

// TestTwins: two GPUs of one UUID. Neither may look free.
func TestTwins(t *testing.T) {
	a, b := wholeGPU(0), wholeGPU(1)
	b.UUID = a.UUID
	got, problems := new(Reporter).Report(observe(noon, a, b))
	if len(problems) != 2 || got.Source != SourceLabels {
		t.Errorf("%v, source %s", problems, got.Source)
	}
	for _, g := range got.GPUs {
		if len(g.Holders) != 1 || !g.Holders[0].Unknown {
			t.Errorf("%+v", g)
		}
	}
}

// TestLost: no layout outlives the driver.
func TestLost(t *testing.T) {
	r := new(Reporter)
	if diff := cmp.Diff(Report{ObservedAt: metav1.NewTime(noon), Source: SourceLabels}, r.Lost(noon)); diff != "" {
		t.Error(diff)
	}
	r.Report(observe(noon, partedGPU(t, 0), wholeGPU(1)))
	gone := []GPU{partedGPU(t, 0).GPU, wholeGPU(1).GPU}
	for i := range gone {
		gone[i].Healthy, gone[i].Instances, gone[i].Holders = false, nil, []Holder{{Unknown: true}}
	}
	if diff := cmp.Diff(Report{ObservedAt: metav1.NewTime(noon), Source: SourceLabels, GPUs: gone}, r.Lost(noon)); diff != "" {
		t.Error(diff)
	}
	silent := partedGPU(t, 0)
	silent.Instances, silent.Unlisted = nil, errors.New("no permission")
	if got, _ := r.Report(observe(noon, silent)); got.Source != SourceLabels || got.GPUs[0].Instances != nil {
		t.Errorf("a layout of before is believed: %+v", got)
	}
}
