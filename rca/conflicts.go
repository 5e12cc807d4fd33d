package rca

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// conflicts says, in each of the fixes that were proved, which of other incidents want the
// same room: the same pod leaves for both, one re-makes the GPUs of a node that the other
// changes or uses, or a node has not enough for both. Each was proved as if it were alone.
func conflicts(w *view.Cluster, all []diagnosis.Diagnosis) {
	var wants []want
	for i := range all {
		for k := range all[i].Fixes {
			if f := &all[i].Fixes[k]; f.Proof.Verdict == diagnosis.Schedules && f.Effect != nil {
				wants = append(wants, wantOf(w, &all[i], f))
			}
		}
	}
	at := map[string][]*want{} // by the nodes that each is about
	for i := range wants {
		for node := range wants[i].nodes(w) {
			at[node] = append(at[node], &wants[i])
		}
	}
	for i := range wants {
		wants[i].meet(w, at)
	}
}

// In a crowd for one node few of the others tell as much as all: so many are compared, and
// so many are named.
const (
	maxCompared = 64
	maxNamed    = 20
)

// meet compares a fix with others about the same nodes, and names those that it is against.
func (a *want) meet(w *view.Cluster, at map[string][]*want) {
	met := map[*want]bool{a: true}
	for _, node := range slices.Sorted(maps.Keys(a.nodes(w))) {
		for _, b := range at[node] {
			if len(met) > maxCompared || len(a.fix.Conflicts) == maxNamed {
				return
			}
			if a.of == b.of || met[b] {
				continue
			}
			if met[b] = true; a.against(w, b) {
				a.fix.Conflicts = append(a.fix.Conflicts, fmt.Sprintf("%s#%d", b.of.Incident, b.fix.ID))
			}
		}
	}
}

// nodes are those that the fix changes or uses, and those on which somebody stops.
func (a *want) nodes(w *view.Cluster) map[string]bool {
	out := map[string]bool{}
	for _, n := range slices.Concat(a.remakes, a.fix.Cost.Nodes) {
		out[n] = true
	}
	for n := range a.uses {
		out[n] = true
	}
	for _, s := range a.stops {
		if p := w.State.Pod(s.Namespace, s.Name); p != nil {
			out[p.Spec.NodeName] = true
		}
	}
	return out
}

// want is the room that one fix takes.
type want struct {
	of    *diagnosis.Diagnosis
	fix   *diagnosis.Fix
	stops []diagnosis.PodName
	// remakes are the nodes whose GPUs it re-makes; uses is how much it puts on which node.
	remakes []string
	uses    map[string]corev1.ResourceList
}

func wantOf(w *view.Cluster, d *diagnosis.Diagnosis, f *diagnosis.Fix) want {
	out := want{of: d, fix: f, stops: slices.Concat(f.Cost.Evictions, f.Cost.Restarts), uses: map[string]corev1.ResourceList{}}
	for _, a := range f.Actions {
		if a.Relayout != nil {
			out.remakes = append(out.remakes, a.Target.Name)
		}
	}
	put := func(name, node string) {
		p := w.State.Pod(d.Workload.Namespace, name)
		if p == nil || node == "" || slices.Contains(f.Kinds, diagnosis.ChangeRequest) { // what it then asks is another thing
			return
		}
		if out.uses[node] == nil {
			out.uses[node] = corev1.ResourceList{}
		}
		view.Add(out.uses[node], view.PodRequests(p))
	}
	for name, node := range f.Proof.Places {
		put(name, node)
	}
	if len(f.Proof.Places) == 0 && len(d.Pods.Names) > 0 {
		put(d.Pods.Names[0], f.Proof.Node)
	}
	return out
}

// against says whether the two cannot both be had.
func (a *want) against(w *view.Cluster, b *want) bool {
	if slices.ContainsFunc(a.stops, func(p diagnosis.PodName) bool { return slices.Contains(b.stops, p) }) || a.disturbs(b) || b.disturbs(a) {
		return true
	}
	for node, mine := range a.uses {
		theirs, both := b.uses[node]
		if n := w.Nodes[node]; both && n != nil && !fitsBoth(w, n, mine, theirs, slices.Concat(a.stops, b.stops)) {
			return true
		}
	}
	return false
}

// disturbs says whether a re-makes GPUs of a node that b changes or uses.
func (a *want) disturbs(b *want) bool {
	return slices.ContainsFunc(a.remakes, func(node string) bool {
		return b.uses[node] != nil || slices.Contains(b.fix.Cost.Nodes, node)
	})
}

// fitsBoth says whether a node has enough of everything for both, once those who stop have
// left it.
func fitsBoth(w *view.Cluster, n *view.Node, mine, theirs corev1.ResourceList, stops []diagnosis.PodName) bool {
	for name, q := range mine {
		other, asked := theirs[name]
		if !asked {
			continue
		}
		free := n.Free(name).DeepCopy()
		for _, s := range stops {
			if p := w.State.Pod(s.Namespace, s.Name); p != nil && p.Spec.NodeName == n.Name {
				free.Add(n.Requests[p][name])
			}
		}
		free.Sub(q)
		if free.Cmp(other) < 0 {
			return false
		}
	}
	return true
}
