package layouts

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// InstancesInUse judges by counts of live objects alone.
func InstancesInUse(_ *view.Cluster, n *view.Node, s *Short) *view.Finding {
	a, ok := s.MIG()
	if !ok || s.Allocatable < a.Count {
		return nil
	}
	return view.Found(diagnosis.Proven, instancesSay(n, a, s), n.UsedOf(a, s.Allocatable))
}

func instancesSay(n *view.Node, a view.Ask, s *Short) string {
	if used := n.Requested[a.Resource]; used.Value() < s.Allocatable {
		return "fewer " + a.Profile + " instances are free than it asks"
	}
	return "its " + a.Profile + " instances are all held"
}
