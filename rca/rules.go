package rca

import (
	"strings"

	"github.com/unpend/unpend/rca/whatif"
)

// Rule tells one cause: it looks at one blocker of one node and claims it, or
// leaves it to the rules after it.
type Rule struct {
	ID CauseID
	// Tell returns nil when the blocker is not of this cause. It judges by live
	// objects and geometry; the blocker's text only says what to look at.
	Tell func(c *Case, n *nodeView, b whatif.Blocker) *finding
}

// finding is what a rule found on one node.
type finding struct {
	certainty Certainty
	says      string // completes "N nodes: …"; the same for every node of a cause where it can be
	evidence  []Evidence
}

// Rules lists the rules in the order in which they are asked. A node that is
// being re-made, or whose re-making failed, comes before anything its counts
// seem to say; what is advertised wrongly before it is counted; what the model cannot do before what its layout lacks; instances
// that exist and are held before positions; Unknown takes the rest.
func Rules() []Rule {
	return []Rule{
		untoleratedTaint,
		nodeCordoned,
		nodeNotReady,
		nodeSelectorMismatch,
		podAffinityConflict,
		topologySpreadConflict,
		volumeConflict,
		migConfigStuck,
		migConfigInProgress,
		migConfigFailed,
		migConfigUnknown,
		migModePending,
		migConfigInvalidForGPU,
		sharedResourceRenamed,
		devicePluginDown,
		migLayoutDrift,
		gpuNotMIGCapable,
		migStrategyMismatch,
		migProfileUnsupported,
		gpuUnhealthy,
		idleGPUHolders,
		preemptionBlocked,
		migInstancesInUse,
		migLayoutMismatch,
		migFragmented,
		migFull,
		gpusFragmentedAcrossNodes,
		gpusInUse,
		gpuRequestTooLarge,
		hostResourcesShort,
		draClaimMissingHere,
		draClassMissing,
		draDriverMissing,
		draNoDeviceMatches,
		draSelectorError,
		draDevicesInUse,
		draUnread,
		unknown,
	}
}

// PodRule tells a cause that is the pod's own, whatever the nodes are like.
type PodRule struct {
	ID   CauseID
	Tell func(c *Case) *finding
	// Aside says that the cause keeps the pod from no node: it is told beside
	// what does.
	Aside bool
	// refusal says that it is told of pods that do not exist: it keeps those of the
	// same workload that do from no node.
	refusal bool
	// bound says that it is told of pods that have a node: it keeps those of the same
	// workload that wait for one from none.
	bound bool
	// changes are what could be done about it; nil: a person has to look.
	changes func(c *Case) []change
}

// PodRules lists the rules about pods. Each is asked: a pod may be gated and
// have no scheduler.
func PodRules() []PodRule {
	return []PodRule{
		topologyAlignmentRefused,
		sharedRequestTooLarge,
		kubeletAdmissionRefused,
		quotaExceeded,
		limitRangeViolated,
		invalidGPURequest,
		refusedUnsettled,
		zeroGPURequest,
		queueNotAdmitted,
		schedulingGated,
		draClaimMissing,
		draPrepareFailed,
		gangIncomplete,
		preemptionUnderway,
		schedulerMissing,
		noNodes,
		scalingUp,
		autoscalerCannotHelp,
	}
}

// insufficient names the resource of a NodeResourcesFit blocker ("Insufficient
// nvidia.com/gpu", "Too many pods"; noderesources/fit.go, unchanged from 1.30 to
// 1.37).
func insufficient(b whatif.Blocker) (resource string, ok bool) {
	if b.Reason == "Too many pods" {
		return "pods", true
	}
	return strings.CutPrefix(b.Reason, "Insufficient ")
}

// migShort returns the MIG request that a blocker says is short, on a node that
// has GPUs.
func (c *Case) migShort(n *nodeView, b whatif.Blocker) (ask, bool) {
	r, ok := insufficient(b)
	if !ok || !n.hasGPUs() {
		return ask{}, false
	}
	a, ok := c.askOf(r)
	return a, ok && a.profile != ""
}

// gpuShort is migShort for whole GPUs.
func (c *Case) gpuShort(n *nodeView, b whatif.Blocker) (ask, bool) {
	r, ok := insufficient(b)
	if !ok || !n.hasGPUs() {
		return ask{}, false
	}
	a, ok := c.askOf(r)
	return a, ok && a.profile == ""
}

// gpuReason says whether the blocker is about a GPU resource of a GPU node.
func (c *Case) gpuReason(n *nodeView, b whatif.Blocker) bool {
	_, mig := c.migShort(n, b)
	_, gpu := c.gpuShort(n, b)
	return mig || gpu
}
