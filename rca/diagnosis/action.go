package diagnosis

import (
	"maps"
	"slices"
)

// The verbs of an Action.
const (
	VerbEvict    = "evict"    // Target is a pod
	VerbCordon   = "cordon"   // Target is a node, which stays closed until somebody opens it; Note says why
	VerbUncordon = "uncordon" // Target is a node
	VerbPatch    = "patch"    // Patch is merged into the target (strategically: containers by name)
	VerbRecreate = "recreate" // the target is deleted and made again with Patch merged in
	VerbRelayout = "relayout" // Target is a node; Relayout says how
)

// verbs says of each what kinds of objects it may be done to, and what the guard-rails go
// by besides.
var verbs = map[string]struct {
	kinds  []string
	evicts bool // its target is a pod that has to leave
	closes bool // its target is a node that is out of use, meanwhile or for good
}{
	VerbEvict:    {kinds: []string{"Pod"}, evicts: true},
	VerbCordon:   {kinds: []string{"Node"}, closes: true},
	VerbUncordon: {kinds: []string{"Node"}},
	VerbPatch:    {kinds: []string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ResourceQuota", "Pod"}},
	VerbRecreate: {kinds: []string{"Job", "Pod"}},
	VerbRelayout: {kinds: []string{"Node"}, closes: true},
}

// Verbs are all there are, by name.
func Verbs() []string { return slices.Sorted(maps.Keys(verbs)) }

// Kinds are those that the action's verb may be done to; none when the verb is not known.
func (a *Action) Kinds() []string { return verbs[a.Verb].kinds }

// Evicts are the pods that the action evicts.
func (a *Action) Evicts() []Target {
	var out []Target
	if verbs[a.Verb].evicts {
		out = append(out, a.Target)
	}
	if a.Relayout != nil {
		out = append(out, a.Relayout.Victims...)
	}
	return out
}

// Stopped are the pods that stop by the action, in whatever way: they are evicted, or stop
// because their workload is made again or rolled.
func (a *Action) Stopped() []Target { return append(a.Evicts(), a.Stops...) }

// Closes says whether the action takes its node out of use, while it works or for good.
func (a *Action) Closes() bool { return verbs[a.Verb].closes }

// Targets are all that the action writes to, pods first: people know them.
func (a *Action) Targets() []Target {
	if a.Relayout == nil {
		return []Target{a.Target}
	}
	out := append(slices.Clone(a.Relayout.Victims), a.Target)
	if a.Relayout.ConfigMap != nil {
		out = append(out, *a.Relayout.ConfigMap)
	}
	return out
}
