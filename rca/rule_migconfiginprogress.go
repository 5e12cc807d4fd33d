package rca

import (
	"fmt"
	"strings"
	"time"
)

// stuckAfter is when a pending layout is no longer in progress: MIG manager
// itself waits at most five minutes for each component (mig-parted
// pkg/mig/reconfigure/reconfigure.go).
const stuckAfter = 6 * time.Minute

// migConfigInProgress holds while MIG manager is within its deadline.
var migConfigInProgress = Rule{ID: MIGConfigInProgress, gpu: true, Tell: func(c *Case, n *nodeView, _ *blocker) *finding {
	state := n.manager().state
	if state != "pending" && state != "rebooting" {
		return nil
	}
	since, known := n.labelSetAt(labelMIGState)
	evidence := []Evidence{{n.ref(), fmt.Sprintf("label %s=%s, %s=%s", labelMIGConfig, n.Labels[labelMIGConfig], labelMIGState, state)}}
	if !known {
		return &finding{Possible, "its MIG layout is being changed", evidence}
	}
	if c.world.state.Now.Sub(since) > stuckAfter {
		return nil
	}
	return &finding{Proven, "its MIG layout is being changed now", evidence}
}}

// labelSetAt reads from managedFields when the label was last written.
func (n *nodeView) labelSetAt(label string) (time.Time, bool) {
	key := fmt.Sprintf("%q", "f:"+label)
	var newest time.Time
	for _, m := range n.ManagedFields {
		if m.Time == nil || m.FieldsV1 == nil && m.Manager != "nvidia-mig-manager" {
			continue
		}
		if (m.FieldsV1 == nil || strings.Contains(m.FieldsV1.GetRawString(), key)) && m.Time.After(newest) {
			newest = m.Time.Time
		}
	}
	return newest, !newest.IsZero()
}
