package rca

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// paused is the value of a gpu.deploy label while MIG manager has stopped its
// component (mig-parted pkg/mig/reconfigure/reconfigure.go).
const paused = "paused-for-mig-change"

// capacityGone is how long the kubelet keeps the capacity of a device plugin that
// went away (devicemanager endpointStopGracePeriod, 1.36.3): without it, pending
// has lasted at least so long.
const capacityGone = 5 * time.Minute

// migConfigStuck: pending for longer than MIG manager ever waits, with the
// components paused: errors on that way leave the label as it is
// (NVIDIA/mig-parted#485).
var migConfigStuck = Rule{ID: MIGConfigStuck, gpu: true, Tell: func(c *Case, n *nodeView, _ *blocker) *finding {
	if n.manager().state != "pending" {
		return nil
	}
	since, known := n.labelSetAt(labelMIGState)
	certainty, how := Proven, fmt.Sprintf("pending since %s", since.UTC().Format("15:04 MST"))
	switch {
	case known && c.world.state.Now.Sub(since) > stuckAfter:
	case !known && n.capacityLost():
		certainty, how = Likely, fmt.Sprintf("pending, and capacity is gone, which takes %s", capacityGone)
	default:
		return nil
	}
	evidence := []Evidence{{n.ref(), fmt.Sprintf("label %s=%s, %s", labelMIGConfig, n.Labels[labelMIGConfig], how)}}
	if labels := n.pausedComponents(); len(labels) > 0 {
		evidence = append(evidence, Evidence{n.ref(), strings.Join(labels, ", ") + "=" + paused})
	}
	return &finding{certainty, "MIG manager is stuck", evidence}
}}

func (n *nodeView) pausedComponents() []string {
	var out []string
	for name, value := range n.Labels {
		if strings.HasPrefix(name, "nvidia.com/gpu.deploy.") && value == paused {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// capacityLost says that GPU resources were registered and are all gone.
func (n *nodeView) capacityLost() bool {
	keys := 0
	for name, q := range n.Status.Capacity {
		if isGPU(name) {
			if keys++; q.Sign() > 0 {
				return false
			}
		}
	}
	return keys > 0
}
