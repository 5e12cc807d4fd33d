package nodeprobe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Observation is all that was seen at one moment.
type Observation struct {
	// At is when looking began: what was given to a pod since then may be missing.
	At      time.Time
	Reading Reading
	Held    []Allocation
	// Unread is why the kubelet would not tell its allocations.
	Unread error
}

// Reporter makes reports of observations. It remembers the last layout of each
// GPU for when the driver will not say. Not for concurrent use.
type Reporter struct {
	last []remembered
}

// remembered is a GPU as it was when all of it could be read.
type remembered struct {
	GPU
	layout bool // its instances may still be believed
}

// Report is what an observation tells, with the problems it has.
//
// A GPU whose instances are not known or not possible keeps its last layout
// with unknown holders. If it never had one, the whole report is of source
// labels, which claims no positions: a GPU without instances would read as empty.
// So it is where GPUs are hidden, and where there are none.
func (r *Reporter) Report(o Observation) (Report, []Problem) {
	report := Report{ObservedAt: metav1.NewTime(o.At), Source: SourceNVML, DriverVersion: o.Reading.DriverVersion}
	var problems []Problem
	note := func(g GPU, says ...string) {
		for _, s := range says {
			problems = append(problems, Problem{g.Index, g.UUID, s})
		}
	}
	var seen []Seen
	for i, s := range vetted(o.Reading.GPUs) {
		note(o.Reading.GPUs[i].GPU, s.Doubts...)
		if s.Unlisted != nil {
			note(o.Reading.GPUs[i].GPU, s.Unlisted.Error())
			var known bool
			if s, known = r.recall(s, o.Reading.GPUs); !known {
				report.Source = SourceLabels
			}
		}
		if s.UUID != "" {
			seen = append(seen, s)
		}
	}
	if n := o.Reading.Hidden; n > 0 { // where they lie, and whether they are free, nobody knows
		report.Source = SourceLabels
		problems = append(problems, Problem{-1, "", fmt.Sprintf("GPUs of the kernel that the driver does not list: %d; can their /dev/nvidia<n> be opened here?", n)})
	}
	if len(o.Reading.GPUs) == 0 { // the library lists none of those that it may not open
		report.Source = SourceLabels
	}
	joined, stray := Join(seen, o.Held, o.Unread)
	for _, a := range stray {
		problems = append(problems, Problem{-1, "", "device " + a.Name + ", held by " + a.Holder.Namespace + "/" + a.Holder.Pod + ", is on no GPU that was read"})
	}
	r.remember(seen)
	for i := range joined {
		sortInstances(joined[i].Instances)
	}
	slices.SortFunc(joined, func(a, b GPU) int { return a.Index - b.Index })
	report.GPUs = joined
	return report, problems
}

// Lost is the report when the driver says nothing at all. No layout outlives the
// driver, so what is left is which GPUs there were; none of them is usable.
func (r *Reporter) Lost(at time.Time) Report {
	report := Report{ObservedAt: metav1.NewTime(at), Source: SourceLabels}
	for i := range r.last {
		g := &r.last[i]
		g.layout, g.Healthy, g.Instances, g.Holders = false, false, nil, []Holder{{Unknown: true}}
		report.GPUs = append(report.GPUs, g.GPU)
	}
	return report
}

// vetted takes back what the driver said and cannot be.
func vetted(gpus []Seen) []Seen {
	plain := make([]GPU, len(gpus))
	for i, s := range gpus {
		plain[i] = s.GPU
	}
	twins := identityProblems(plain)
	out := slices.Clone(gpus)
	for i := range out {
		s := &out[i]
		s.Doubts = slices.Clone(s.Doubts)
		if says := profileProblems(s.Profiles); len(says) > 0 {
			s.Doubts = append(s.Doubts, says...)
			s.Profiles = nil
		}
		if s.Unlisted != nil {
			continue
		}
		says := append(twins[i], layoutProblems(s.GPU)...)
		if len(says) > 0 {
			s.Unlisted = errors.New(strings.Join(says, "; "))
		}
	}
	return out
}

// recall fills in what was last known of a GPU. False: its layout is not known.
func (r *Reporter) recall(s Seen, present []Seen) (Seen, bool) {
	i := slices.IndexFunc(r.last, func(g remembered) bool {
		if s.UUID != "" {
			return g.UUID == s.UUID
		}
		gone := !slices.ContainsFunc(present, func(p Seen) bool { return p.UUID == g.UUID })
		return g.Index == s.Index && gone
	})
	s.Instances = nil
	if i < 0 {
		return s, false
	}
	was := r.last[i]
	if s.UUID == "" { // it does not even open
		s.GPU, s.Instances = was.GPU, nil
		s.Healthy = false
	}
	if s.MIG == nil {
		s.MIG = was.MIG
	}
	if partitioned(s.GPU) && (!was.layout || !partitioned(was.GPU)) {
		return s, false
	}
	if partitioned(s.GPU) {
		for _, in := range was.Instances {
			in.Holder = &Holder{Unknown: true}
			s.Instances = append(s.Instances, in)
		}
	}
	return s, true
}

// remember keeps what was read in full, and of the others what was known.
func (r *Reporter) remember(seen []Seen) {
	var next []remembered
	for _, s := range seen {
		if s.Unlisted == nil {
			next = append(next, remembered{s.GPU, true})
			continue
		}
		i := slices.IndexFunc(r.last, func(g remembered) bool { return g.UUID == s.UUID })
		if i >= 0 {
			next = append(next, r.last[i])
		}
	}
	slices.SortFunc(next, func(a, b remembered) int { return a.Index - b.Index })
	r.last = next
}

func partitioned(g GPU) bool { return g.MIG != nil && g.MIG.Current }

func sortInstances(in []Instance) {
	slices.SortFunc(in, func(a, b Instance) int { return a.Start - b.Start })
}
