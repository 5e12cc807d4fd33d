// Package guard holds the limits within which fixes are carried out: it says of a
// plan whether it may begin now, must wait, or is refused, how many persons have to
// agree, and when everything stops until a person has looked. It reads nothing and
// writes nothing: the caller lists the world afresh for each judgement, judges one
// plan at a time, and records that a plan runs before it judges the next.
package guard

import (
	"encoding/json"
	"time"
)

// Where the limits and the kill switch are kept: a ConfigMap in unpend's own namespace.
const (
	ConfigMap = "unpend-guards"
	LimitsKey = "limits.yaml" // what Parse reads
	PausedKey = "paused"      // what Paused reads
)

// Limits are the guard-rails. The zero value is of no use: start from Defaults.
type Limits struct {
	// NodesInFlight is how many nodes are worked on at once.
	NodesInFlight int
	// PoolUnavailablePercent of the GPU nodes may be out of use, ours and others'
	// together; one node may be in any case.
	PoolUnavailablePercent int
	Breaker                Breaker
	EvictionsPerPlan       int // pods that stop, by evictions and restarts together
	EvictionsPerHour       int
	// CoolDown is how long a node is left alone after a plan has changed it.
	CoolDown time.Duration
	// OppositeWithin is how long nothing takes back what a plan has done.
	OppositeWithin time.Duration
	// PlanTTL is how long after it was recorded a plan can be begun.
	PlanTTL    time.Duration
	Freeze     []Freeze
	TwoPersons TwoPersons
}

// Breaker says when everything stops until a person resets it.
type Breaker struct {
	// More than Percent of the GPU nodes, and at least AtLeast, were cordoned or
	// became NotReady within Window ...
	Percent int
	AtLeast int
	Window  time.Duration
	// ... or Failures plans failed within FailureWindow.
	Failures      int
	FailureWindow time.Duration
}

// TwoPersons says which plans two persons have to approve.
type TwoPersons struct {
	ModeChange     bool // a GPU's MIG mode changes
	Nodes          int  // more nodes than this are changed
	Evictions      int  // more pods than this stop
	HigherPriority bool // a pod stops that has a higher priority than those that wait
}

// Defaults are the limits where nobody has set others.
func Defaults() Limits {
	return Limits{
		NodesInFlight:          1,
		PoolUnavailablePercent: 10, // as Karpenter's disruption budget
		Breaker: Breaker{
			Percent: 20, // as Karpenter's node repair
			AtLeast: 3,  // or one node of four would stop everything
			Window:  10 * time.Minute, Failures: 3, FailureWindow: time.Hour,
		},
		EvictionsPerPlan: 30,
		EvictionsPerHour: 100,
		CoolDown:         time.Hour,
		OppositeWithin:   24 * time.Hour,
		PlanTTL:          15 * time.Minute,
		TwoPersons:       TwoPersons{ModeChange: true, Nodes: 1, Evictions: 10, HigherPriority: true},
	}
}

// MarshalJSON writes the limits in the words that Parse reads.
func (l Limits) MarshalJSON() ([]byte, error) {
	out := nested(l.fields())
	freeze := make([]any, len(l.Freeze))
	for i := range l.Freeze {
		freeze[i] = nested(l.Freeze[i].fields(""))
	}
	out["freeze"] = freeze
	return json.Marshal(out)
}

// fields are the limits by their names in the YAML, with what each may be.
func (l *Limits) fields() []field {
	const many = 1_000_000
	return []field{
		whole("nodesInFlight", &l.NodesInFlight, 1, many), // 0 would be the kill switch's work
		whole("poolUnavailablePercent", &l.PoolUnavailablePercent, 0, 100),
		whole("breaker.percent", &l.Breaker.Percent, 0, 100),
		whole("breaker.atLeast", &l.Breaker.AtLeast, 1, many),
		span("breaker.window", &l.Breaker.Window, time.Second),
		whole("breaker.failures", &l.Breaker.Failures, 1, many),
		span("breaker.failureWindow", &l.Breaker.FailureWindow, time.Second),
		whole("evictionsPerPlan", &l.EvictionsPerPlan, 0, many),
		whole("evictionsPerHour", &l.EvictionsPerHour, 0, many),
		span("coolDown", &l.CoolDown, 0),
		span("oppositeWithin", &l.OppositeWithin, 0),
		span("planTTL", &l.PlanTTL, time.Second),
		flag("twoPersons.modeChange", &l.TwoPersons.ModeChange),
		whole("twoPersons.nodes", &l.TwoPersons.Nodes, 0, many),
		whole("twoPersons.evictions", &l.TwoPersons.Evictions, 0, many),
		flag("twoPersons.higherPriority", &l.TwoPersons.HigherPriority),
	}
}
