package causes

import (
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/kubelet"
)

// Why a kubelet does not begin a pod is read in a room of its own; each rule tells one reason.
var (
	topologyAlignmentRefused = PodRule{ID: diagnosis.TopologyAlignmentRefused, Tell: func(c *Case) *finding { return found(c.Kubelet.Aligned(c.Verdict.Feasible())) }}
	sharedRequestTooLarge    = PodRule{ID: diagnosis.SharedRequestTooLarge, Tell: func(c *Case) *finding { return found(c.Kubelet.Shares()) }}
	// kubeletAdmissionRefused takes the kubelet's other refusals.
	kubeletAdmissionRefused = PodRule{ID: diagnosis.KubeletAdmissionRefused, Tell: func(c *Case) *finding {
		f, words := c.Kubelet.Refused()
		if words != "" {
			c.entitle(diagnosis.KubeletAdmissionRefused, words)
		}
		return found(f)
	}}
	// draPrepareFailed is of pods that have a node: of a workload that has also pods without
	// one, this keeps those from none.
	draPrepareFailed = PodRule{ID: diagnosis.DRAPrepareFailed, bound: true, Tell: func(c *Case) *finding {
		return found(kubelet.Prepared(c.Cluster, c.Unprepared))
	}}
)
