package causes

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// idleGPUHolders: with what idle pods hold of it, a node has enough. Idle is who was
// watched for the whole window on each of its GPUs, or whose containers could not begin;
// what could not be watched counts as work. What was watched is only likely: it is one
// source, and it knows pods by their names.
var idleGPUHolders = Rule{ID: diagnosis.IdleGPUHolders, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	a, ok := heldShort(c, n, b.Blocker)
	if !ok {
		return nil
	}
	free := n.Free(a.Resource)
	left := free.Value()
	f := &finding{Certainty: diagnosis.Proven, Evidence: []diagnosis.Evidence{n.UseOf(a)}}
	for _, p := range n.Pods {
		q, holds := n.Requests[p][a.Resource]
		if !holds || !c.Cluster.Idle(p) {
			continue
		}
		u := c.Cluster.Use(p)
		left += q.Value()
		says, fact, claims := idleness(u)
		f.Says = a.Held() + " held by pods that " + says
		if u.Stalled == nil || u.Stalled.Crashes() {
			f.Certainty = diagnosis.Likely
		}
		f.Evidence = append(f.Evidence, diagnosis.Fact(view.PodRef(p), fmt.Sprintf("holds %s of %s; %s", q.String(), a.Resource, fact), append(view.Holding(p, a.Resource, q.String()), claims...)...))
	}
	if f.Says == "" || left < a.Count {
		return nil
	}
	return f
}}

// idleness is what is said of an idle pod: of it and its like, and of it alone.
func idleness(u diagnosis.Use) (says, fact string, claims []diagnosis.Claim) {
	s := u.Stalled
	switch {
	case s == nil:
		return "did no GPU work for " + view.Age(u.Watched),
			fmt.Sprintf("no GPU work seen since %s, at most %.1f %% in the last %s (Prometheus)", diagnosis.Clock(u.Since), u.Max, view.Age(u.Watched)), nil
	case s.Crashes():
		return "end as soon as they begin", fmt.Sprintf("it ends as soon as it begins (%s)", s.Text()), stalledClaims(s)
	}
	return "have not begun for " + view.Age(u.Watched), "it has not begun since " + diagnosis.Clock(u.Since) + " (" + s.Text() + ")", stalledClaims(s)
}

// stalledClaims are of the container that does not begin.
func stalledClaims(s *incident.Stall) []diagnosis.Claim {
	if s.Container == "" {
		return nil
	}
	list := "status.containerStatuses"
	if s.Init {
		list = "status.initContainerStatuses"
	}
	of := list + "[name=" + s.Container + "]."
	claims := []diagnosis.Claim{diagnosis.That(of+"state.waiting.reason", "", diagnosis.Is, s.Reason)}
	if s.Crashes() {
		claims = append(claims, diagnosis.That(of+"restartCount", "", diagnosis.Is, strconv.Itoa(int(s.Restarts))))
	}
	return claims
}
