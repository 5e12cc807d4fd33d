package nodeprobe

import (
	"fmt"
	"slices"
	"time"
)

// maxSkew is how far the clocks of two machines may be apart before a report
// from the future is doubted.
const maxSkew = time.Minute

// maxSlices is above the memory slices of any board; the largest known has 12.
const maxSlices = 64

// Problem is a part of a report that cannot be true.
type Problem struct {
	GPU  int    // index; -1: the report as a whole
	UUID string // of the GPU
	Says string
}

func (p Problem) String() string {
	if p.GPU < 0 {
		return p.Says
	}
	if p.UUID == "" {
		return fmt.Sprintf("GPU %d: %s", p.GPU, p.Says)
	}
	return fmt.Sprintf("GPU %d (%s): %s", p.GPU, p.UUID, p.Says)
}

// Check lists what cannot be true about a report: a GPU without a UUID or with
// another's, profiles without starts or sizes, instances that overlap, have no
// size or stand where their profile never starts, a MIG device in two instances,
// a time in the future of now. A GPU with a problem is not to be planned with.
// Overlap is no problem in a report from labels, which has no positions.
func Check(r Report, now time.Time) []Problem {
	var out []Problem
	if ahead := r.ObservedAt.Sub(now); ahead > maxSkew {
		out = append(out, Problem{-1, "", fmt.Sprintf("the report is from %s in the future: the clocks differ", ahead.Round(time.Second))})
	}
	note := func(g GPU, says []string) {
		for _, s := range says {
			out = append(out, Problem{g.Index, g.UUID, s})
		}
	}
	twins := identityProblems(r.GPUs)
	for i, g := range r.GPUs {
		note(g, twins[i])
		note(g, profileProblems(g.Profiles))
		if r.Source != SourceLabels {
			note(g, layoutProblems(g))
		}
	}
	return out
}

// identityProblems says per GPU what makes it impossible to tell from others.
func identityProblems(gpus []GPU) [][]string {
	out := make([][]string, len(gpus))
	owner := map[string]int{} // of a MIG device
	for i, g := range gpus {
		if g.UUID == "" {
			out[i] = append(out[i], "has no UUID")
		}
		for k, other := range gpus {
			switch {
			case k == i:
			case g.UUID != "" && other.UUID == g.UUID:
				out[i] = append(out[i], fmt.Sprintf("has the UUID of GPU %d too", other.Index))
			case other.Index == g.Index:
				out[i] = append(out[i], "its index is there twice")
			}
		}
		for _, in := range g.Instances {
			for _, uuid := range in.UUIDs {
				if k, twice := owner[uuid]; twice {
					out[i] = append(out[i], fmt.Sprintf("MIG device %s is in two instances, also on GPU %d", uuid, gpus[k].Index))
				}
				owner[uuid] = i
			}
		}
	}
	return out
}

// profileProblems says what makes a table of profiles useless.
func profileProblems(profiles []Profile) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range profiles {
		switch {
		case p.Name == "":
			out = append(out, fmt.Sprintf("the profile with id %d has no name", p.ID))
		case seen[p.Name]:
			out = append(out, fmt.Sprintf("profile %s is there twice", p.Name))
		case len(p.Starts) == 0:
			out = append(out, fmt.Sprintf("profile %s has no starts", p.Name))
		case slices.Min(p.Starts) < 0:
			out = append(out, fmt.Sprintf("profile %s starts at memory slice %d", p.Name, slices.Min(p.Starts)))
		case p.MemorySlices < 1 || p.ComputeSlices < 1 || p.Max < 1:
			out = append(out, fmt.Sprintf("profile %s has %d memory slices, %d compute slices and at most %d instances", p.Name, p.MemorySlices, p.ComputeSlices, p.Max))
		}
		seen[p.Name] = true
	}
	return out
}

// layoutProblems says what makes the instances of a GPU impossible. They are
// held against the reported profiles, or else those of the model, or nothing.
func layoutProblems(g GPU) []string {
	if len(g.Instances) > 0 && !partitioned(g) {
		return []string{"has instances while MIG is off"}
	}
	profiles := g.Profiles
	if m, ok := ModelOf(g.Product); ok && len(profiles) == 0 {
		profiles = m.Profiles
	}
	var out []string
	for k, in := range g.Instances {
		if says := instanceProblem(in, profiles); says != "" {
			out = append(out, says)
			continue
		}
		for _, other := range g.Instances[:k] {
			if in.Start < other.Start+other.Size && other.Start < in.Start+in.Size {
				out = append(out, fmt.Sprintf("instances %s@%d and %s@%d overlap", other.Profile, other.Start, in.Profile, in.Start))
			}
		}
	}
	return out
}

func instanceProblem(in Instance, profiles []Profile) string {
	if in.Size < 1 || in.Size > maxSlices {
		return fmt.Sprintf("instance %d (%s) has size %d", in.ID, in.Profile, in.Size)
	}
	if in.Start < 0 || in.Start >= maxSlices {
		return fmt.Sprintf("instance %d (%s) starts at memory slice %d", in.ID, in.Profile, in.Start)
	}
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == in.Profile })
	switch {
	case len(profiles) == 0:
		return ""
	case i < 0:
		return fmt.Sprintf("instance %d is of profile %q, which the GPU does not have", in.ID, in.Profile)
	case in.Size != profiles[i].MemorySlices:
		return fmt.Sprintf("instance %s@%d covers %d memory slices, the profile covers %d", in.Profile, in.Start, in.Size, profiles[i].MemorySlices)
	case !slices.Contains(profiles[i].Starts, in.Start):
		return fmt.Sprintf("instance %s starts at memory slice %d, the profile starts at %v", in.Profile, in.Start, profiles[i].Starts)
	}
	return ""
}
