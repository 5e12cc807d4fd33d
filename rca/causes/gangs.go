package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/gangs"
	"github.com/unpend/unpend/rca/view"
)

// gangIncomplete: the pod is one of a group that is scheduled whole or not at all, and that
// cannot be.
var gangIncomplete = PodRule{ID: diagnosis.GangIncomplete, Tell: func(c *Case) *finding {
	if c.Gang == nil {
		return nil
	}
	if f := c.Gang.Tell(len(c.Verdict.Feasible()) > 0); f != nil || c.Gang.Known {
		return found(f)
	}
	for _, w := range c.Queue.Words() {
		if w.OfGang() {
			return found(view.Found(diagnosis.Possible, "its scheduler says that the gang is not complete", w.Evidence()))
		}
	}
	return nil
}}

// workloadDeadlock: nobody of the workload ends, so nobody of it starts.
var workloadDeadlock = PodRule{ID: diagnosis.WorkloadDeadlock, Aside: true, leads: true, Tell: func(c *Case) *finding {
	if c.Unborn || c.bound || c.Gang != nil && !c.Gang.Broken() || c.Growth().Told(diagnosis.ScalingUp) != nil {
		return nil
	}
	w := gangs.Workload{Subject: c.Subject(), Incident: c.Incident, Asks: c.Asks, Wants: c.Wants, Verdict: c.Verdict, Company: c.Company}
	f := w.Deadlock()
	c.Stuck = w.Stuck
	return found(f)
}}
