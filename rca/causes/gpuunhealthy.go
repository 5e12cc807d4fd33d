package causes

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// gpuUnhealthy: with the devices that the plugin has marked unhealthy (capacity above
// allocatable), or those of GPUs that the driver calls so, the request would fit.
var gpuUnhealthy = Rule{ID: diagnosis.GPUUnhealthy, Tell: func(_ *Case, n *view.Node, b *blocker) *finding {
	if !b.asked {
		return nil
	}
	a := b.Ask
	says := devicesSick(n, b)
	sick := b.Capacity - b.Allocatable
	if !n.Unreadable {
		sick += n.Withheld(a.Resource)
	}
	if sick > 0 {
		free := n.Free(a.Resource)
		if free.Value()+sick >= a.Count {
			evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("capacity %s=%d, allocatable %d", a.Resource, b.Capacity, b.Allocatable),
				diagnosis.That(diagnosis.Capacity, string(a.Resource), diagnosis.Is, strconv.FormatInt(b.Capacity, 10)), diagnosis.That(diagnosis.Allocatable, string(a.Resource), diagnosis.Is, strconv.FormatInt(b.Allocatable, 10)))}
			return &finding{diagnosis.Proven, says, slices.Concat(evidence, n.SickFacts(), stack.Ailing(n))}
		}
	}
	if a.Profile != "" && mendingHelps(n, a) {
		return &finding{n.Certainty(), says, slices.Concat(n.SickFacts(), []diagnosis.Evidence{n.UseOf(a)}, stack.Ailing(n))}
	}
	return nil
}}

// devicesSick says how many of a node's devices are unhealthy: all where its device plugin offers none, or its report calls each GPU so.
func devicesSick(n *view.Node, b *blocker) string {
	ill := len(n.SickGPUs())
	switch all := b.Capacity > 0 && !n.AdvertisesAny() || ill > 0 && ill == len(n.Reported()); {
	case all && b.Capacity == 1:
		return "its only device is unhealthy"
	case all:
		return "all of its devices are unhealthy"
	}
	return "some of its devices are unhealthy"
}

// mendingHelps says whether the node would have room for the profile if its sick GPUs were
// mended, and has none now: with nobody leaving, or else with everybody.
func mendingHelps(n *view.Node, a view.Ask) bool {
	room, mended, most, mendedMost := 0, 0, 0, 0
	for _, g := range n.GPUs {
		sick := g.Sick
		g.Sick = false
		empty := placement.GPU{Grid: g.Grid}
		now, ever := g.Fit(a.Profile).Room, empty.Fit(a.Profile).Room
		mended, mendedMost = mended+now, mendedMost+ever
		if !sick {
			room, most = room+now, most+ever
		}
	}
	helps := func(now, then int) bool { return int64(now) < a.Count && int64(then) >= a.Count }
	return helps(room, mended) || helps(most, mendedMost)
}
