package diagnosis

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
	GPUStackMissing           CauseID = "GPUStackMissing"
	GPUStackNotOnNode         CauseID = "GPUStackNotOnNode"
	DriverNotReady            CauseID = "DriverNotReady"
	RuntimeNotConfigured      CauseID = "RuntimeNotConfigured"
	AutoscalerLimit           CauseID = "AutoscalerLimit"
	CloudCapacityRefused      CauseID = "CloudCapacityRefused"
	ScaleUpStuck              CauseID = "ScaleUpStuck"
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
	QuotaDemandsRequests      CauseID = "QuotaDemandsRequests"
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
	QueueMisconfigured        CauseID = "QueueMisconfigured"
	SchedulerRefused          CauseID = "SchedulerRefused"
	WorkloadDeadlock          CauseID = "WorkloadDeadlock"
	GangIncomplete            CauseID = "GangIncomplete"
	SchedulerMissing          CauseID = "SchedulerMissing"
	ScalingUp                 CauseID = "ScalingUp"
	AutoscalerCannotHelp      CauseID = "AutoscalerCannotHelp"
	NoNodes                   CauseID = "NoNodes"
	Unknown                   CauseID = "Unknown"
)

// catalogue has a row for each cause: its words in a headline. The order settles ties.
var catalogue = []struct {
	id    CauseID
	words string
}{
	{MIGProfileUnsupported, "no GPU has that profile"},
	{MIGLayoutMismatch, "no GPU is laid out so"},
	{MIGFragmented, "free slices in pieces"},
	{MIGFull, "GPUs are full"},
	{MIGInstancesInUse, "held by others"},
	{MIGStrategyMismatch, "wrong name for the strategy"},
	{MIGConfigFailed, "MIG manager failed"},
	{MIGConfigStuck, "MIG manager is stuck"},
	{MIGConfigInProgress, "layout being changed"},
	{MIGConfigUnknown, "unknown mig.config"},
	{MIGConfigInvalidForGPU, "layout impossible here"},
	{MIGModePending, "MIG mode waits for a reset"},
	{MIGLayoutDrift, "GPUs and node disagree"},
	{GPUNotMIGCapable, "GPUs without MIG"},
	{GPUsInUse, "GPUs held by others"},
	{GPUsFragmentedAcrossNodes, "free GPUs on different nodes"},
	{GPURequestTooLarge, "no node has as many GPUs"},
	{DevicePluginDown, "device plugin down"},
	{GPUUnhealthy, "GPUs unhealthy"},
	{IdleGPUHolders, "held by idle pods"},
	{GPUStackMissing, "nothing announces the GPUs"},
	{GPUStackNotOnNode, "device plugin kept off"},
	{DriverNotReady, "driver not ready"},
	{RuntimeNotConfigured, "runtime without GPUs"},
	{AutoscalerLimit, "node pool at its limit"},
	{CloudCapacityRefused, "the cloud refuses a node"},
	{ScaleUpStuck, "promised node did not come"},
	{SharedResourceRenamed, "resource renamed by sharing"},
	{SharedRequestTooLarge, "more than one share asked"},
	{UntoleratedTaint, "taint not tolerated"},
	{NodeSelectorMismatch, "selector matches no node"},
	{NodeCordoned, "node cordoned"},
	{NodeNotReady, "node not ready"},
	{PodAffinityConflict, "pod affinity rules"},
	{TopologySpreadConflict, "topology spread"},
	{VolumeConflict, "its volume is elsewhere"},
	{HostResourcesShort, "CPU or memory short"},
	{TopologyAlignmentRefused, "NUMA alignment refused"},
	{KubeletAdmissionRefused, "kubelet refused it"},
	{QuotaExceeded, "its quota refuses it"},
	{LimitRangeViolated, "a LimitRange refuses it"},
	{InvalidGPURequest, "its GPU request is invalid"},
	{QuotaDemandsRequests, "quota wants requests stated"},
	{PreemptionBlocked, "preemption is blocked"},
	{SchedulingGated, "held by gates"},
	{QueueNotAdmitted, "not admitted by its queue"},
	{QueueMisconfigured, "its queue is not set up"},
	{SchedulerRefused, "its scheduler refuses"},
	{WorkloadDeadlock, "it waits for its own pods"},
	{GangIncomplete, "its gang is not complete"},
	{DRAClaimMissing, "its ResourceClaim is missing"},
	{DRAClassMissing, "no such DeviceClass"},
	{DRADriverMissing, "no driver offers devices"},
	{DRANoDeviceMatches, "no device matches"},
	{DRASelectorError, "its selector fails"},
	{DRADevicesInUse, "devices held by others"},
	{DRAPrepareFailed, "its devices are not prepared"},
	{SchedulerMissing, "no scheduler answers"},
	{ScalingUp, "a node is coming"},
	{AutoscalerCannotHelp, "autoscaler cannot help"},
	{NoNodes, "the cluster has no node"},
	{Unknown, "cause not settled"},
}

// Catalogue lists the causes in the order that settles ties.
func Catalogue() []CauseID {
	out := make([]CauseID, len(catalogue))
	for i, row := range catalogue {
		out[i] = row.id
	}
	return out
}

// Words say a cause in a headline; empty for one that is not of the catalogue.
func (id CauseID) Words() string {
	for _, row := range catalogue {
		if row.id == id {
			return row.words
		}
	}
	return ""
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
	RecreatePod         FixKind = "RecreatePod"
	RepairDeviceStack   FixKind = "RepairDeviceStack"
	RestartKubelet      FixKind = "RestartKubelet"
	QuarantineGPU       FixKind = "QuarantineGPU"
	RebootNode          FixKind = "RebootNode"
	ScaleNodePool       FixKind = "ScaleNodePool"
	Wait                FixKind = "Wait"
	Manual              FixKind = "Manual"
)

// fixKinds has a row for each kind. Order is its place in the catalogue, which settles
// ties; disturbs says how much it disturbs beside the others, least first: the kind of a
// fix that takes several is the one that disturbs most.
var fixKinds = map[FixKind]struct{ order, disturbs int }{
	ChangeRequest:       {0, 10},
	EvictPods:           {1, 16},
	MovePods:            {2, 15},
	RepartitionGPU:      {3, 20},
	RevertMIGConfig:     {4, 19},
	FixMIGConfig:        {5, 13},
	RestartDevicePlugin: {6, 11},
	UncordonNode:        {7, 4},
	AddToleration:       {8, 5},
	FixSelector:         {9, 6},
	RaiseQuota:          {10, 3},
	RaisePriority:       {11, 17},
	ReleaseIdleHolder:   {12, 14},
	FixClaim:            {13, 7},
	RecreatePod:         {14, 8},
	RepairDeviceStack:   {15, 9},
	RestartKubelet:      {16, 12},
	QuarantineGPU:       {17, 18},
	RebootNode:          {18, 21},
	ScaleNodePool:       {19, 2},
	Wait:                {20, 0},
	Manual:              {21, 1},
}

// Order is the place of a kind in the catalogue.
func (k FixKind) Order() int { return fixKinds[k].order }

// Disturbs is how much a kind of fix disturbs beside the others.
func (k FixKind) Disturbs() int { return fixKinds[k].disturbs }
