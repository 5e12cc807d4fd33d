package causes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// idleGPUHolders: with what idle pods hold of it, a node has enough. Idle is who was
// watched for the whole window on each of its GPUs; what could not be watched counts
// as work. Only likely: it is one source, and it knows pods by their names.
var idleGPUHolders = Rule{ID: diagnosis.IdleGPUHolders, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if len(c.Cluster.Uses) == 0 {
		return nil
	}
	a, ok := heldShort(c, n, b.Blocker)
	if !ok {
		return nil
	}
	free := n.Free(a.Resource)
	left := free.Value()
	f := &finding{Certainty: diagnosis.Likely, Evidence: []diagnosis.Evidence{n.UseOf(a)}}
	for _, p := range n.Pods {
		q, holds := n.Requests[p][a.Resource]
		if !holds || !c.Cluster.Idle(p) {
			continue
		}
		u := c.Cluster.Use(p)
		left += q.Value()
		f.Says = fmt.Sprintf("%s held by pods that did no GPU work for %s", a.Held(), view.Age(u.Watched))
		f.Evidence = append(f.Evidence, diagnosis.Fact(view.PodRef(p), fmt.Sprintf("holds %s of %s; no GPU work seen since %s, at most %.1f %% in the last %s (Prometheus)",
			q.String(), a.Resource, u.Since.UTC().Format("2006-01-02 15:04 MST"), u.Max, view.Age(u.Watched)), view.Holding(p, a.Resource, q.String())...))
	}
	if f.Says == "" || left < a.Count {
		return nil
	}
	return f
}}
