package rca

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/nodeprobe"
)

// devicePluginDown: the node has devices and offers none of any kind. A single
// key at 0 proves nothing: keys of a former layout stay (kubelet, devicemanager
// GetCapacity; nodestatus/setters.go, 1.36.3).
var devicePluginDown = Rule{ID: DevicePluginDown, gpu: true, Tell: func(_ *Case, n *nodeView, _ *blocker) *finding {
	if n.advertisesAny() || n.mixesUnderSingle() {
		return nil
	}
	says := "has GPUs and offers none"
	evidence := []Evidence{{n.ref(), "allocatable: " + n.advertised()}}
	if n.geometry != nil && n.geometry.Report.Source == nodeprobe.SourceNVML {
		devices := n.devices()
		if devices == 0 {
			return nil // GPUs in MIG mode without instances: there is nothing to offer
		}
		return &finding{n.certainty(), says, append(evidence, Evidence{n.reportRef(), fmt.Sprintf("%d devices exist", devices)})}
	}
	count, err := strconv.Atoi(n.Labels[labelGPUCount])
	if err != nil || count == 0 {
		return nil
	}
	return &finding{Possible, says, append(evidence, Evidence{n.ref(), fmt.Sprintf("label %s=%d", labelGPUCount, count)})}
}}

// devices counts what the device plugin would offer: instances, and GPUs without
// MIG, as far as they are healthy.
func (n *nodeView) devices() int {
	count := 0
	for _, g := range n.geometry.Report.GPUs {
		switch {
		case !g.Healthy:
		case g.MIG != nil && g.MIG.Current:
			count += len(g.Instances)
		default:
			count++
		}
	}
	return count
}
