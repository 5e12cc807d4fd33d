package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// migInstancesInUse judges by counts of live objects alone.
var migInstancesInUse = Rule{ID: diagnosis.MIGInstancesInUse, gpu: true, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	a, ok := b.mig()
	if !ok || b.allocatable < a.Count {
		return nil
	}
	return &finding{diagnosis.Proven, instancesSay(n, a, b), []diagnosis.Evidence{n.UsedOf(a, b.allocatable)}}
}}

func instancesSay(n *view.Node, a view.Ask, b *blocker) string {
	if used := n.Requested[a.Resource]; used.Value() < b.allocatable {
		return "fewer " + a.Profile + " instances are free than it asks"
	}
	return "its " + a.Profile + " instances are all held"
}
