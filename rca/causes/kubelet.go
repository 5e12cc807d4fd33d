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
		return found(kubelet.Prepared(c.Cluster, kubelet.Unprepared(c.Unstarted)))
	}}
)

// ofStop is of pods that have a node, too, where something else than devices stops them.
func ofStop(id diagnosis.CauseID) PodRule {
	return PodRule{ID: id, bound: true, Tell: func(c *Case) *finding {
		s := c.StoppedBy()
		if s == nil || s.Cause != id {
			return nil
		}
		if c.bound {
			c.entitle(id, s.Words)
		}
		return found(s.Told())
	}}
}

// StoppedBy is what keeps pods of the incident from beginning on the nodes that they have; nil for nothing.
func (c *Case) StoppedBy() *kubelet.Stop { return kubelet.StopOf(c.Cluster, c.Unstarted) }

// Placed says whether all that waits of the incident has its node.
func (c *Case) Placed() bool { return c.bound }
