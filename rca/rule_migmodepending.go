package rca

import (
	"fmt"
)

// migModePending: the MIG mode that was set takes effect at the next reset of the
// GPU (nvml.h, nvmlDeviceGetMigMode: current and pending).
var migModePending = Rule{ID: MIGModePending, gpu: true, Tell: func(c *Case, n *nodeView, _ *blocker) *finding {
	if n.geometry == nil || !c.world.classOf(n).pending {
		return nil
	}
	var evidence []Evidence
	for _, g := range n.geometry.Report.GPUs {
		if g.MIG != nil && g.MIG.Current != g.MIG.Pending {
			evidence = append(evidence, Evidence{n.reportRef(), fmt.Sprintf("GPU %d: MIG mode is %s, %s after a reset", g.Index, onOff(g.MIG.Current), onOff(g.MIG.Pending))})
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return &finding{n.certainty(), "its MIG mode waits for a GPU reset or a reboot", evidence}
}}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
