package layouts

import (
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// heldSlices claims how many memory slices of a GPU have holders; that it has the GPU, where
// holders are not known: a report that is old has others.
func heldSlices(n *view.Node, g *placement.GPU, free int) []diagnosis.Claim {
	if !n.HoldersKnown {
		return []diagnosis.Claim{view.OfGPU(g.Index, "", diagnosis.Exists, "")}
	}
	path := "sum(report.gpus[index=" + strconv.Itoa(g.Index) + "].instances[holder].size)"
	return []diagnosis.Claim{diagnosis.That(path, "", diagnosis.Is, strconv.Itoa(g.Grid.Slices()-free))}
}

// instances claims how many of a profile the node's GPUs have; none of a profile whose name
// reports spell otherwise than resources.
func instances(profile string, count int64) []diagnosis.Claim {
	if strings.Contains(profile, ".me") {
		return nil
	}
	return []diagnosis.Claim{diagnosis.That("count(report.gpus[*].instances[profile="+profile+"])", "", diagnosis.Is, strconv.FormatInt(count, 10))}
}

// profileClaims are the profiles that a node's report has, and the one that it has not; what
// its model is, where it has none.
func profileClaims(n *view.Node, names []string, not string) []diagnosis.Claim {
	if n.Geometry == nil || len(n.Geometry.Report.GPUs) == 0 || len(n.Geometry.Report.GPUs[0].Profiles) == 0 {
		return n.Labelled("nvidia.com/gpu.product")
	}
	out := []diagnosis.Claim{diagnosis.That("report.gpus[*].product", "", diagnosis.Is, n.Product()), diagnosis.That("report.gpus[*].profiles[name="+not+"]", "", diagnosis.Absent, "")}
	for _, name := range names {
		out = append(out, diagnosis.That("report.gpus[*].profiles[name="+name+"]", "", diagnosis.Exists, ""))
	}
	return out
}

// unheldFrom claims of a GPU how many instances it has, and that those have no holder where
// the profile could start.
func unheldFrom(g *placement.GPU, start int, profile string) []diagnosis.Claim {
	out := []diagnosis.Claim{view.OfGPU(g.Index, "", diagnosis.Exists, ""),
		diagnosis.That("count(report.gpus[index="+strconv.Itoa(g.Index)+"].instances)", "", diagnosis.Is, strconv.Itoa(len(g.Slots)))}
	p, _ := g.Grid.Profile(profile) // the GPU has it: it could start there
	for _, s := range g.Slots {
		if s.Start < start+p.MemorySlices && start < s.Start+s.Size {
			at := ".instances[start=" + strconv.Itoa(s.Start) + "]"
			out = append(out, view.OfGPU(g.Index, at+".profile", diagnosis.Is, s.Profile), view.OfGPU(g.Index, at+".holder", diagnosis.Absent, ""))
		}
	}
	return out
}
