package causes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Rule tells one cause: it looks at one blocker of one node and claims it, or
// leaves it to the rules after it.
type Rule struct {
	ID diagnosis.CauseID
	// gpu: the rule looks only at blockers where a node that has GPUs has too few of them.
	gpu bool
	// Tell returns nil when the blocker is not of this cause. It judges by live
	// objects and geometry; the blocker's text only says what to look at.
	Tell func(c *Case, n *view.Node, b *blocker) *finding
}

// finding is what a rule found on one node. What it says completes "N nodes: …", and is the same
// for every node of a cause where it can be.
type finding view.Finding

// Rules lists the rules in the order in which they are asked. A node that is
// being re-made, or whose re-making failed, comes before anything its counts
// seem to say, and why it failed before that it did: MIG manager says "failed" of a
// name that it does not know, too (mig-parted assert --valid-config); what is
// advertised wrongly before it is counted; what the model cannot do before what its
// layout lacks; instances that exist and are held before positions; Unknown takes the rest.
func Rules() []Rule {
	return []Rule{
		untoleratedTaint,
		driverUpgrading,
		nodeCordoned,
		nodeNotReady,
		nodeSelectorMismatch,
		podAffinityConflict,
		topologySpreadConflict,
		volumeConflict,
		offersNoneUnready,
		ofLayout(diagnosis.MIGConfigStuck, layouts.ConfigStuck),
		ofLayout(diagnosis.MIGConfigInProgress, layouts.ConfigInProgress),
		ofLayout(diagnosis.MIGConfigUnknown, layouts.ConfigUnknown),
		ofLayout(diagnosis.MIGConfigInvalidForGPU, layouts.ConfigInvalidForGPU),
		ofLayout(diagnosis.MIGModePending, layouts.ModePending),
		ofLayout(diagnosis.MIGConfigFailed, layouts.ConfigFailed),
		sharedResourceRenamed,
		ofLayout(diagnosis.MIGLayoutDrift, layouts.LostAtBoot),
		gpuStackMissing,
		gpuStackNotOnNode,
		driverNotReady,
		runtimeNotConfigured,
		ofLayout(diagnosis.MIGLayoutDrift, layouts.LayoutLost),
		devicePluginDown,
		ofLayout(diagnosis.MIGLayoutDrift, layouts.LayoutDrift),
		ofLayout(diagnosis.GPUNotMIGCapable, layouts.NotCapable),
		ofLayout(diagnosis.MIGStrategyMismatch, layouts.StrategyMismatch),
		ofLayout(diagnosis.MIGProfileUnsupported, layouts.ProfileUnsupported),
		gpuUnhealthy,
		fewerThanItsMachine,
		idleGPUHolders,
		preemptionBlocked,
		ofLayout(diagnosis.MIGInstancesInUse, layouts.InstancesInUse),
		ofLayout(diagnosis.MIGLayoutMismatch, layouts.LayoutMismatch),
		ofLayout(diagnosis.MIGFragmented, layouts.Fragmented),
		ofLayout(diagnosis.MIGFull, layouts.Full),
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
		devicesInUse,
		onNoNode,
		gpuStackUnseen,
		gpuStackUntold,
		runtimeUntold,
		pluginUntold,
		noGPUAnywhere,
		unknown,
	}
}

// PodRule tells a cause that is the pod's own, whatever the nodes are like.
type PodRule struct {
	ID   diagnosis.CauseID
	Tell func(c *Case) *finding
	// Aside says that the cause keeps the pod from no node: the diagnosis names it
	// beside the causes that do.
	Aside bool
	// leads says that the cause is told before those of nodes although it keeps the pod from
	// none of them by itself.
	leads bool
	// refusal says that the cause is one of pods that do not exist. It keeps no existing
	// pod of the workload from a node.
	refusal bool
	// bound says that the cause is one of pods that have a node. It keeps no pod of the
	// workload that waits for a node from one.
	bound bool
}

// PodRules lists the rules about pods. Each is asked: a pod may be gated and
// have no scheduler.
func PodRules() []PodRule {
	return []PodRule{
		topologyAlignmentRefused,
		sharedRequestTooLarge,
		kubeletAdmissionRefused,
		ofRefusal(diagnosis.QuotaDemandsRequests, (*admission.Refused).Demands),
		ofRefusal(diagnosis.QuotaExceeded, (*admission.Refused).Exceeded),
		ofRefusal(diagnosis.LimitRangeViolated, wordless((*admission.Refused).Bounds)),
		ofRefusal(diagnosis.InvalidGPURequest, wordless((*admission.Refused).Invalid)),
		ofRefusal(diagnosis.RuntimeNotConfigured, (*admission.Refused).NoRuntime),
		refusedUnsettled,
		zeroGPURequest,
		queueMisconfigured,
		queueNotAdmitted,
		schedulingGated,
		draClaimMissing,
		draPrepareFailed,
		ofStop(diagnosis.RuntimeNotConfigured),
		ofStop(diagnosis.DriverNotReady),
		ofStop(diagnosis.VolumeConflict),
		ofStop(diagnosis.NodeNotReady),
		ofStop(diagnosis.Unknown),
		gangIncomplete,
		workloadDeadlock,
		preemptionUnderway,
		schedulerMissing,
		notGivenToHAMi,
		misnamed,
		allUnhealthy,
		schedulerSilent,
		schedulerRefused,
		noNodes,
		scalingUp,
		scaleUpStuck,
		cloudCapacityRefused,
		autoscalerLimit,
		autoscalerCannotHelp,
		nothingKeeps,
	}
}

// blocker is one reason of the scheduler's filters to refuse a node, read once for all
// rules.
type blocker struct {
	whatif.Blocker
	scarce        corev1.ResourceName // what the node has too little of; empty where that is not the reason
	asked         bool                // it is GPUs that are asked
	gpu           bool                // asked, of a node that has GPUs
	layouts.Short                     // what is asked of what is scarce, and what the node has of it
}

// Read is a reason why a node is refused, with what it is about.
func (c *Case) Read(n *view.Node, reason whatif.Blocker) blocker {
	b := blocker{Blocker: reason}
	name, ok := view.Insufficient(reason)
	if !ok {
		return b
	}
	b.scarce = corev1.ResourceName(name)
	b.Ask, b.asked = c.askOf(name)
	b.gpu = b.asked && n.HasGPUs()
	has := n.StockOf(b.scarce)
	b.Allocatable, b.Capacity = has.Allocatable, has.Capacity
	return b
}
