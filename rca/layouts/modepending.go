package layouts

import (
	"fmt"
	"strconv"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ModePending tells: the MIG mode that was set takes effect at the next reset of the
// GPU (nvml.h, nvmlDeviceGetMigMode: current and pending).
func ModePending(c *view.Cluster, n *view.Node, _ *Short) *view.Finding {
	if n.Geometry == nil || !c.ClassOf(n).Pending {
		return nil
	}
	var evidence []diagnosis.Evidence
	for _, g := range n.Geometry.Report.GPUs {
		if g.MIG != nil && g.MIG.Current != g.MIG.Pending {
			evidence = append(evidence, diagnosis.Fact(n.ReportRef(), fmt.Sprintf("GPU %d: MIG mode is %s, %s after a reset", g.Index, onOff(g.MIG.Current), onOff(g.MIG.Pending)),
				view.OfGPU(g.Index, ".mig.current", diagnosis.Is, strconv.FormatBool(g.MIG.Current)), view.OfGPU(g.Index, ".mig.pending", diagnosis.Is, strconv.FormatBool(g.MIG.Pending))))
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return view.Found(n.Certainty(), "its MIG mode waits for a GPU reset or a reboot", evidence...)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
