package cluster

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// DeriveGeometries fills in, for nodes without a probe's report, what the DRA
// driver says. Whose claims could not be read has holders that nobody knows.
func (s *State) DeriveGeometries() {
	byNode := map[string][]*resourcev1.ResourceSlice{}
	for _, r := range s.ResourceSlices {
		if r.Spec.NodeName != nil && r.Spec.Driver == nodeprobe.DRADriver {
			byNode[*r.Spec.NodeName] = append(byNode[*r.Spec.NodeName], r)
		}
	}
	s.Doubts = map[string]string{}
	for _, n := range s.Nodes {
		if s.Geometries[n.Name] != nil || s.Illegible[n.Name] != "" || len(byNode[n.Name]) == 0 {
			continue
		}
		geo, err := nodeprobe.FromSlices(n.Name, s.Now, byNode[n.Name], s.ResourceClaims)
		if err != nil {
			s.Doubts[n.Name] = err.Error()
			continue
		}
		if s.Unread["ResourceClaim"] != "" {
			doubtHolders(geo)
		}
		s.Geometries[n.Name] = geo
	}
}

// doubtHolders leaves nothing free.
func doubtHolders(geo *nodeprobe.NodeGeometry) {
	for i := range geo.Report.GPUs {
		g := &geo.Report.GPUs[i]
		if len(g.Instances) == 0 {
			g.Holders = []nodeprobe.Holder{{Unknown: true}}
		}
		for k := range g.Instances {
			g.Instances[k].Holder = &nodeprobe.Holder{Unknown: true}
		}
	}
}
