package layouts

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
)

// heldSlices claims how many memory slices of a GPU have holders, and how many nobody holds; where
// holders are not known, that of all instances, each of which may have one.
func heldSlices(n *view.Node, g *placement.GPU, free int) []diagnosis.Claim {
	index, which := strconv.Itoa(g.Index), "holder"
	if !n.HoldersKnown {
		which = "*"
	}
	held := diagnosis.That("sum(report.gpus[index="+index+"].instances["+which+"].size)", "", diagnosis.Is, strconv.Itoa(g.Grid.Slices()-free))
	if !profiled(n) {
		return []diagnosis.Claim{held}
	}
	left := diagnosis.That("unheld", index, diagnosis.Is, strconv.Itoa(free))
	if !n.HoldersKnown {
		left = diagnosis.That("slices["+index+"] - "+held.Path, "", diagnosis.Is, strconv.Itoa(free))
	}
	return []diagnosis.Claim{held, diagnosis.That("slices", index, diagnosis.Is, strconv.Itoa(g.Grid.Slices())), left}
}

// profiled says whether the report has the profiles of every GPU with MIG on: its memory slices
// are read off them.
func profiled(n *view.Node) bool {
	return n.Geometry != nil && !slices.ContainsFunc(n.Geometry.Report.GPUs, func(g nodeprobe.GPU) bool { return g.MIG != nil && g.MIG.Current && len(g.Profiles) == 0 })
}

// startsAt claims that a profile may start there, where the report has the profile by that name.
func startsAt(n *view.Node, g *placement.GPU, profile string, start int) []diagnosis.Claim {
	for _, r := range n.Geometry.Report.GPUs {
		if r.Index == g.Index && slices.ContainsFunc(r.Profiles, func(p nodeprobe.Profile) bool { return p.Name == profile }) {
			return []diagnosis.Claim{view.OfGPU(g.Index, ".profiles[name="+profile+"].starts", diagnosis.Is, strconv.Itoa(start))}
		}
	}
	return nil
}

// entryClaims are how many of each profile an entry of a ConfigMap of layouts asks of a GPU.
func entryClaims(ref, entry string, layout placement.Layout) []diagnosis.Claim {
	out := []diagnosis.Claim{diagnosis.That("data[config.yaml].mig-configs["+entry+"]", "", diagnosis.Exists, "").Of(ref)}
	for _, profile := range slices.Sorted(maps.Keys(layout)) {
		out = append(out, diagnosis.That("data[config.yaml].mig-configs["+entry+"][*].mig-devices["+profile+"]", "", diagnosis.Is, strconv.Itoa(layout[profile])).Of(ref))
	}
	return out
}

// wantedClaims are how many of a profile the entry that the node's label names asks of a GPU.
func wantedClaims(c *view.Cluster, n *view.Node, a view.Ask) []diagnosis.Claim {
	config := c.ConfigOf(n)
	for _, rule := range config.Entries[n.Manager().Config] {
		for profile, k := range rule.MIGDevices {
			if view.Spelled(profile) == a.Profile {
				return entryClaims("ConfigMap/"+config.Source.Namespace+"/"+config.Source.Name, n.Manager().Config, placement.Layout{profile: k})
			}
		}
	}
	return nil
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
