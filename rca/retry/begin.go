package retry

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// Begin is for the pod that has its node, where something on that node stops it: what it is, its
// kubelet has said, and nothing is decided by the scheduler any more.
func Begin(c *edit.Workload, cause diagnosis.CauseID) []edit.Change {
	s := c.StoppedBy()
	if s == nil || s.Cause != cause {
		return nil
	}
	ch := edit.LookAt(cause, s.Title, s.Unproven, s.Commands...)
	ch.Kind, ch.Risk, ch.StopsUnknown, ch.Minutes, ch.Drained = s.Kind, s.Risk, s.StopsUnknown, s.Minutes, s.Drained
	return []edit.Change{ch}
}
