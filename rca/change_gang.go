package rca

import "fmt"

// gangChanges are what lets the whole gang in.
func (c *Bench) gangChanges(cause CauseID) []change {
	g := c.gang
	wait := change{kind: Wait, cause: cause, manual: true, risk: NoRisk, commands: []string{fmt.Sprintf("kubectl -n %s get podgroup.%s/%s -w", c.Pod.Namespace, g.kind.api, g.name)}}
	switch {
	case !g.known:
		wait.until, wait.title = "PodGroup "+g.name+" is there and complete", "wait until PodGroup "+g.name+" is there and complete"
		return []change{wait}
	case g.missing() > 0:
		more := countOf(g.missing(), "more member")
		wait.until, wait.title = more+" of gang "+g.name+" exist", "wait until "+more+" of gang "+g.name+" exist"
		return []change{wait}
	}
	if len(g.victims) == 0 {
		wait.title = fmt.Sprintf("wait until gang %s has room for %s", g.name, countOf(g.min-g.fit, "more member"))
		wait.untestable = fmt.Sprintf("no evictions were found that make room for the whole gang; %d of %d fit", g.fit, g.min)
		return []change{wait}
	}
	evict := c.evictFor(cause, g.victims)
	evict.title = fmt.Sprintf("evict %s so that all of gang %s fit", podList(g.victims), g.name)
	wait.victims, wait.until = g.victims, podList(g.victims)+" ends"
	wait.title = "wait until " + podList(g.victims) + " leaves"
	return []change{evict, wait}
}
