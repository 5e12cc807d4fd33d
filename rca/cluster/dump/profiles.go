package dump

import (
	"slices"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// shareProfiles keeps equal tables of profiles once: the GPUs of a model have the same, and
// they are most of a report.
func shareProfiles(s *cluster.State) {
	known := map[string][]nodeprobe.Profile{} // by product
	same := func(a, b nodeprobe.Profile) bool {
		starts := slices.Equal(a.Starts, b.Starts)
		return starts && a.Name == b.Name && a.ID == b.ID && a.ComputeSlices == b.ComputeSlices && a.MemorySlices == b.MemorySlices && a.MemoryMiB == b.MemoryMiB && a.Max == b.Max
	}
	for _, o := range cluster.KindNamed(nodeprobe.Kind.Kind).Objects(s) {
		g := o.(*nodeprobe.NodeGeometry)
		for i := range g.Report.GPUs {
			gpu := &g.Report.GPUs[i]
			if table := known[gpu.Product]; slices.EqualFunc(table, gpu.Profiles, same) {
				gpu.Profiles = table
			} else {
				known[gpu.Product] = gpu.Profiles
			}
		}
	}
}
