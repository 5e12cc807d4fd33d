package causes

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// devicePluginDown: the node has devices and offers none of any kind. A single
// key at 0 proves nothing: keys of a former layout stay (kubelet, devicemanager
// GetCapacity; nodestatus/setters.go, 1.36.3).
var devicePluginDown = Rule{ID: diagnosis.DevicePluginDown, gpu: true, Tell: func(_ *Case, n *view.Node, _ *blocker) *finding {
	if n.AdvertisesAny() || MixesUnderSingle(n) {
		return nil
	}
	says := "has GPUs and offers none"
	evidence := []diagnosis.Evidence{{Ref: n.Ref(), Fact: "allocatable: " + n.Advertised()}}
	if n.Geometry != nil && n.Geometry.Report.Source == nodeprobe.SourceNVML {
		devices := devicesSeen(n)
		if devices == 0 {
			return nil // GPUs in MIG mode without instances: there is nothing to offer
		}
		return &finding{n.Certainty(), says, append(evidence, diagnosis.Evidence{Ref: n.ReportRef(), Fact: fmt.Sprintf("%d devices exist", devices)})}
	}
	count, err := strconv.Atoi(n.Labels[view.LabelGPUCount])
	if err != nil || count == 0 {
		return nil
	}
	return &finding{diagnosis.Possible, says, append(evidence, diagnosis.Evidence{Ref: n.Ref(), Fact: fmt.Sprintf("label %s=%d", view.LabelGPUCount, count)})}
}}

// devicesSeen counts what the device plugin would offer: instances, and GPUs without
// MIG, as far as they are healthy.
func devicesSeen(n *view.Node) int {
	count := 0
	for _, g := range n.Geometry.Report.GPUs {
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
