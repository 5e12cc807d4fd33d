package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unpend/unpend/nodeprobe"
)

// Slot is one instance on a GPU. Start and Size are memory slices.
type Slot struct {
	Profile     string
	Start, Size int
	// Held is true also when the holder is unknown: unknown is never free.
	Held    bool
	Unknown bool
	Holder  nodeprobe.Holder
}

// GPU is one GPU whose report made sense. Its methods judge Slots as they are at
// the call: a caller that knows more than the report may mark slots as held, or the GPU
// as sick.
type GPU struct {
	Node          string
	Index         int
	UUID, Product string
	Grid          *Grid
	Slots         []Slot // by start
	// Sick GPUs have what their Slots say and room for nothing: nothing on them is free,
	// can be made, or is worth that anybody leaves. Read leaves that to the caller.
	Sick bool
}

// Read takes a reported GPU in. It refuses a geometry that cannot exist (an
// instance that overlaps another, a start or size that its profile does not
// have, a profile that the model does not have, more instances than the board
// can have): a table that reality contradicts proves nothing. The error names
// the GPU.
func Read(node string, gpu nodeprobe.GPU) (GPU, error) {
	out := GPU{Node: node, Index: gpu.Index, UUID: gpu.UUID, Product: gpu.Product}
	if err := out.read(gpu); err != nil {
		return GPU{}, fmt.Errorf("GPU %d (%s) of %s: %w", gpu.Index, gpu.UUID, node, err)
	}
	return out, nil
}

func (gpu *GPU) read(report nodeprobe.GPU) error {
	grid, err := GridOf(report)
	if err != nil {
		return err
	}
	gpu.Grid = grid
	var occupied uint64
	counts, compute := make([]int, len(grid.profiles)), 0
	for _, in := range report.Instances {
		i := grid.index(in.Profile)
		if i < 0 {
			return fmt.Errorf("instance of profile %q, which the model does not have", in.Profile)
		}
		p := &grid.profiles[i]
		counts[i]++
		compute += p.ComputeSlices
		switch {
		case in.Size != p.MemorySlices:
			return fmt.Errorf("instance %s@%d covers %d memory slices, the profile covers %d", p.Name, in.Start, in.Size, p.MemorySlices)
		case !slices.Contains(p.Starts, in.Start):
			return fmt.Errorf("instance %s starts at memory slice %d, the profile starts at %v", p.Name, in.Start, p.Starts)
		case occupied&mask(in.Start, in.Size) != 0:
			return fmt.Errorf("instance %s@%d overlaps another", p.Name, in.Start)
		case counts[i] > p.Max:
			return fmt.Errorf("%d instances of %s, at most %d can exist", counts[i], p.Name, p.Max)
		case grid.binds && compute > grid.compute:
			return fmt.Errorf("instances have %d compute slices, the board has %d", compute, grid.compute)
		}
		occupied |= mask(in.Start, in.Size)
		gpu.Slots = append(gpu.Slots, slotOf(in, p.Name))
	}
	slices.SortFunc(gpu.Slots, func(a, b Slot) int { return cmp.Compare(a.Start, b.Start) })
	return nil
}

func slotOf(in nodeprobe.Instance, profile string) Slot {
	s := Slot{Profile: profile, Start: in.Start, Size: in.Size}
	if in.Holder != nil {
		// A holder without a pod's name is nobody who could be asked to leave.
		s.Held, s.Unknown, s.Holder = true, in.Holder.Unknown || in.Holder.Pod == "", *in.Holder
	}
	return s
}

// Layout is what exists on the GPU now.
func (gpu GPU) Layout() Layout {
	l := Layout{}
	for _, s := range gpu.Slots {
		l[s.Profile]++
	}
	return l
}
