package rca

import "slices"

// CauseID names a root cause of the closed catalogue. The ids are stable: they
// appear in JSON, metric labels and Jira labels.
type CauseID string

// The causes that a rule tells.
const (
	MIGProfileUnsupported     CauseID = "MIGProfileUnsupported"
	MIGLayoutMismatch         CauseID = "MIGLayoutMismatch"
	MIGFragmented             CauseID = "MIGFragmented"
	MIGFull                   CauseID = "MIGFull"
	MIGInstancesInUse         CauseID = "MIGInstancesInUse"
	MIGStrategyMismatch       CauseID = "MIGStrategyMismatch"
	MIGConfigFailed           CauseID = "MIGConfigFailed"
	MIGConfigStuck            CauseID = "MIGConfigStuck"
	MIGConfigInProgress       CauseID = "MIGConfigInProgress"
	MIGConfigUnknown          CauseID = "MIGConfigUnknown"
	MIGConfigInvalidForGPU    CauseID = "MIGConfigInvalidForGPU"
	MIGModePending            CauseID = "MIGModePending"
	MIGLayoutDrift            CauseID = "MIGLayoutDrift"
	GPUNotMIGCapable          CauseID = "GPUNotMIGCapable"
	GPUsInUse                 CauseID = "GPUsInUse"
	GPUsFragmentedAcrossNodes CauseID = "GPUsFragmentedAcrossNodes"
	GPURequestTooLarge        CauseID = "GPURequestTooLarge"
	DevicePluginDown          CauseID = "DevicePluginDown"
	GPUUnhealthy              CauseID = "GPUUnhealthy"
	IdleGPUHolders            CauseID = "IdleGPUHolders"
	SharedResourceRenamed     CauseID = "SharedResourceRenamed"
	SharedRequestTooLarge     CauseID = "SharedRequestTooLarge"
	UntoleratedTaint          CauseID = "UntoleratedTaint"
	NodeSelectorMismatch      CauseID = "NodeSelectorMismatch"
	NodeCordoned              CauseID = "NodeCordoned"
	NodeNotReady              CauseID = "NodeNotReady"
	PodAffinityConflict       CauseID = "PodAffinityConflict"
	TopologySpreadConflict    CauseID = "TopologySpreadConflict"
	VolumeConflict            CauseID = "VolumeConflict"
	HostResourcesShort        CauseID = "HostResourcesShort"
	TopologyAlignmentRefused  CauseID = "TopologyAlignmentRefused"
	KubeletAdmissionRefused   CauseID = "KubeletAdmissionRefused"
	QuotaExceeded             CauseID = "QuotaExceeded"
	LimitRangeViolated        CauseID = "LimitRangeViolated"
	InvalidGPURequest         CauseID = "InvalidGPURequest"
	DRAClaimMissing           CauseID = "DRAClaimMissing"
	DRAClassMissing           CauseID = "DRAClassMissing"
	DRADriverMissing          CauseID = "DRADriverMissing"
	DRANoDeviceMatches        CauseID = "DRANoDeviceMatches"
	DRASelectorError          CauseID = "DRASelectorError"
	DRADevicesInUse           CauseID = "DRADevicesInUse"
	DRAPrepareFailed          CauseID = "DRAPrepareFailed"
	PreemptionBlocked         CauseID = "PreemptionBlocked"
	SchedulingGated           CauseID = "SchedulingGated"
	QueueNotAdmitted          CauseID = "QueueNotAdmitted"
	GangIncomplete            CauseID = "GangIncomplete"
	SchedulerMissing          CauseID = "SchedulerMissing"
	ScalingUp                 CauseID = "ScalingUp"
	AutoscalerCannotHelp      CauseID = "AutoscalerCannotHelp"
	NoNodes                   CauseID = "NoNodes"
	Unknown                   CauseID = "Unknown"
)

// catalogueOrder is the order of the catalogue; it settles ties.
var catalogueOrder = []CauseID{
	MIGProfileUnsupported, MIGLayoutMismatch, MIGFragmented, MIGFull, MIGInstancesInUse, MIGStrategyMismatch,
	MIGConfigFailed, MIGConfigStuck, MIGConfigInProgress, MIGConfigUnknown, MIGConfigInvalidForGPU, MIGModePending,
	MIGLayoutDrift, GPUNotMIGCapable,
	GPUsInUse, GPUsFragmentedAcrossNodes, GPURequestTooLarge, DevicePluginDown, GPUUnhealthy, IdleGPUHolders,
	SharedResourceRenamed, SharedRequestTooLarge,
	UntoleratedTaint, NodeSelectorMismatch, NodeCordoned, NodeNotReady, PodAffinityConflict, TopologySpreadConflict,
	VolumeConflict, HostResourcesShort, TopologyAlignmentRefused, KubeletAdmissionRefused,
	QuotaExceeded, LimitRangeViolated, InvalidGPURequest, PreemptionBlocked,
	SchedulingGated, QueueNotAdmitted, GangIncomplete,
	DRAClaimMissing, DRAClassMissing, DRADriverMissing, DRANoDeviceMatches, DRASelectorError, DRADevicesInUse, DRAPrepareFailed,
	SchedulerMissing, ScalingUp, AutoscalerCannotHelp, NoNodes, Unknown,
}

// FixKind names a kind of fix of the closed catalogue.
type FixKind string

// The kinds of fixes that are computed.
const (
	ChangeRequest       FixKind = "ChangeRequest"
	EvictPods           FixKind = "EvictPods"
	MovePods            FixKind = "MovePods"
	RepartitionGPU      FixKind = "RepartitionGPU"
	RevertMIGConfig     FixKind = "RevertMIGConfig"
	FixMIGConfig        FixKind = "FixMIGConfig"
	RestartDevicePlugin FixKind = "RestartDevicePlugin"
	UncordonNode        FixKind = "UncordonNode"
	AddToleration       FixKind = "AddToleration"
	FixSelector         FixKind = "FixSelector"
	RaiseQuota          FixKind = "RaiseQuota"
	RaisePriority       FixKind = "RaisePriority"
	ReleaseIdleHolder   FixKind = "ReleaseIdleHolder"
	FixClaim            FixKind = "FixClaim"
	QuarantineGPU       FixKind = "QuarantineGPU"
	RebootNode          FixKind = "RebootNode"
	ScaleNodePool       FixKind = "ScaleNodePool"
	Wait                FixKind = "Wait"
	Manual              FixKind = "Manual"
)

// fixOrder is the order of the catalogue of fixes; it settles ties.
var fixOrder = []FixKind{
	ChangeRequest, EvictPods, MovePods, RepartitionGPU, RevertMIGConfig, FixMIGConfig, RestartDevicePlugin, UncordonNode,
	AddToleration, FixSelector, RaiseQuota, RaisePriority, ReleaseIdleHolder, FixClaim, QuarantineGPU, RebootNode, ScaleNodePool, Wait, Manual,
}

// disruption orders kinds by how much they disturb, least first: the kind of a
// fix that takes several is the most disruptive of them.
var disruption = []FixKind{
	Wait, Manual, ScaleNodePool, RaiseQuota, UncordonNode, AddToleration, FixSelector, FixClaim, ChangeRequest, RestartDevicePlugin, FixMIGConfig,
	ReleaseIdleHolder, MovePods, EvictPods, RaisePriority, QuarantineGPU, RevertMIGConfig, RepartitionGPU, RebootNode,
}

func mostDisruptive(set []change) FixKind {
	most := set[0].kind
	for i := range set {
		if slices.Index(disruption, set[i].kind) > slices.Index(disruption, most) {
			most = set[i].kind
		}
	}
	return most
}
