package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/gangs"
	"github.com/unpend/unpend/rca/view"
)

// gangIncomplete: the pod is one of a group that is scheduled whole or not at all, and that
// cannot be. Members that the API server refuses are told of by what refuses them.
var gangIncomplete = PodRule{ID: diagnosis.GangIncomplete, Tell: func(c *Case) *finding {
	if c.Gang == nil || c.membersRefused() {
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

// membersRefused says whether its gang lacks pods because the API server refuses them.
func (c *Case) membersRefused() bool {
	return c.Gang != nil && c.Gang.Known && c.Gang.Missing() > 0 && c.Refused.Next() != nil && !c.Refused.All[0].Held
}

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
