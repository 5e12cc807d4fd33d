package diagnosis

import "slices"

// Unkept is what is said of one or more nodes that have no blocker, and whether the pod fits
// there. Blockers are what kube-scheduler's rules say: they say nothing of a pod that has its
// node, and do not decide about one that another scheduler refuses.
func (d Diagnosis) Unkept(nodes int) (says string, fits bool) {
	refused := slices.ContainsFunc(d.Causes, func(c Cause) bool { return c.ID == SchedulerRefused })
	return unkept(d.Pods.Placed, refused, nodes)
}

// Unkept is the same of a diagnosis that travelled.
func (s Summary) Unkept(nodes int) (says string, fits bool) {
	refused := slices.ContainsFunc(s.Causes, func(c CauseSummary) bool { return c.ID == SchedulerRefused })
	return unkept(s.Pods.Placed, refused, nodes)
}

func unkept(placed, refused bool, nodes int) (string, bool) {
	them := "it"
	if nodes > 1 {
		them = "them"
	}
	switch {
	case placed:
		return "not asked for: the pod has its node", false
	case refused:
		return "kube-scheduler's rules allow " + them + ", and do not decide", false
	}
	return "nothing keeps the pod from " + them, true
}
