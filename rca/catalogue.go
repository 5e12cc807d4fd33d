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
	MIGConfigInProgress       CauseID = "MIGConfigInProgress"
	MIGConfigUnknown          CauseID = "MIGConfigUnknown"
	MIGLayoutDrift            CauseID = "MIGLayoutDrift"
	GPUNotMIGCapable          CauseID = "GPUNotMIGCapable"
	GPUsInUse                 CauseID = "GPUsInUse"
	GPUsFragmentedAcrossNodes CauseID = "GPUsFragmentedAcrossNodes"
	UntoleratedTaint          CauseID = "UntoleratedTaint"
	NodeSelectorMismatch      CauseID = "NodeSelectorMismatch"
	NodeCordoned              CauseID = "NodeCordoned"
	NodeNotReady              CauseID = "NodeNotReady"
	HostResourcesShort        CauseID = "HostResourcesShort"
	Unknown                   CauseID = "Unknown"
)

// catalogueOrder is the order of the catalogue; it settles ties.
var catalogueOrder = []CauseID{
	MIGProfileUnsupported, MIGLayoutMismatch, MIGFragmented, MIGFull, MIGInstancesInUse, MIGStrategyMismatch,
	MIGConfigFailed, MIGConfigInProgress, MIGConfigUnknown, MIGLayoutDrift, GPUNotMIGCapable,
	GPUsInUse, GPUsFragmentedAcrossNodes,
	UntoleratedTaint, NodeSelectorMismatch, NodeCordoned, NodeNotReady, HostResourcesShort, Unknown,
}

// FixKind names a kind of fix of the closed catalogue.
type FixKind string

// The kinds of fixes that are computed.
const (
	ChangeRequest  FixKind = "ChangeRequest"
	EvictPods      FixKind = "EvictPods"
	MovePods       FixKind = "MovePods"
	RepartitionGPU FixKind = "RepartitionGPU"
	UncordonNode   FixKind = "UncordonNode"
	AddToleration  FixKind = "AddToleration"
	FixSelector    FixKind = "FixSelector"
	Wait           FixKind = "Wait"
	Manual         FixKind = "Manual"
)

// fixOrder is the order of the catalogue of fixes; it settles ties.
var fixOrder = []FixKind{ChangeRequest, EvictPods, MovePods, RepartitionGPU, UncordonNode, AddToleration, FixSelector, Wait, Manual}

// disruption orders kinds by how much they disturb, least first: the kind of a
// fix that takes several is the most disruptive of them.
var disruption = []FixKind{Wait, Manual, UncordonNode, AddToleration, FixSelector, ChangeRequest, MovePods, EvictPods, RepartitionGPU}

func mostDisruptive(kinds []FixKind) FixKind {
	return slices.MaxFunc(kinds, func(a, b FixKind) int {
		return slices.Index(disruption, a) - slices.Index(disruption, b)
	})
}
