package rca

import (
	"fmt"
)

// idleGPUHolders: with what idle pods hold of it, a node has enough. Idle is who was
// watched for the whole window on each of its GPUs; what could not be watched counts
// as work. Only likely: it is one source, and it knows pods by their names.
var idleGPUHolders = Rule{ID: IdleGPUHolders, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if len(c.world.uses) == 0 {
		return nil
	}
	a, ok := c.heldShort(n, b.Blocker)
	if !ok {
		return nil
	}
	free := n.free(a.resource)
	left := free.Value()
	f := &finding{certainty: Likely, evidence: []Evidence{n.useOf(a)}}
	for _, p := range n.pods {
		q, holds := n.requests[p][a.resource]
		if !holds || !c.world.idle(p) {
			continue
		}
		u := c.world.use(p)
		left += q.Value()
		f.says = fmt.Sprintf("%s held by pods that did no GPU work for %s", a.held(), age(u.Watched))
		f.evidence = append(f.evidence, Evidence{"Pod/" + p.Namespace + "/" + p.Name, fmt.Sprintf("holds %s of %s; no GPU work seen since %s, at most %.1f %% in the last %s (Prometheus)",
			q.String(), a.resource, u.Since.UTC().Format("2006-01-02 15:04 MST"), u.Max, age(u.Watched))})
	}
	if f.says == "" || left < a.count {
		return nil
	}
	return f
}}

// held begins a sentence about who holds what is asked.
func (a ask) held() string {
	if a.profile != "" {
		return "its " + a.profile + " instances are"
	}
	return "GPUs are"
}
