package rca

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher"
)

// refusedRest places, after the pod, the rest of what its gang lacks, changed like the
// pod where they are of the same workload. It says why the gang still waits; empty
// when the pod has no gang, or all of it fits.
func (c *finder) refusedRest(ctx context.Context, s *whatif.Snapshot, f *candidate) (string, error) {
	g := c.gang
	if g == nil || !g.known {
		return "", nil
	}
	for _, m := range c.rest() {
		node, err := s.Place(ctx, c.changed(m, f))
		if err != nil {
			return "", fmt.Errorf("place member %s/%s: %w", m.Namespace, m.Name, err)
		}
		if node == "" {
			return fmt.Sprintf("it would fit, but not all %d members of its gang do", g.min), nil
		}
	}
	return "", nil
}

// rest are the other members that the gang lacks, as many as exist of the least number.
func (c *finder) rest() []*corev1.Pod {
	order := slices.DeleteFunc(c.gangOrder(), func(m *corev1.Pod) bool { return m.Name == c.Pod.Name })
	return order[:min(len(order), max(0, c.gang.lacks()-1))]
}

// proveGang completes the proof of a fix that lets a whole gang in. Until all of it
// fits nobody holds room for it, and pods that come back after their eviction come
// first: where they could take it again, evictions prove nothing.
func (c *finder) proveGang(ctx context.Context, s *whatif.Snapshot, f *candidate, pod *corev1.Pod) error {
	g := c.gang
	if g == nil || !g.known || g.missing() > 0 {
		return nil
	}
	f.fix.Proof.Why += fmt.Sprintf("; with it all %d members of its gang have a node", g.min)
	if len(f.victims) == 0 {
		return nil
	}
	members := append([]*corev1.Pod{pod}, c.rest()...)
	return whatif.Try(s, func(s *whatif.Snapshot) error {
		for _, m := range members {
			s.DeletePod(m.Namespace, m.Name)
		}
		for _, v := range f.victims {
			if !comesBack(v) {
				continue
			}
			again := v.DeepCopy()
			again.Spec.NodeName, again.Name = "", v.Name+"-again"
			if err := c.takeBack(ctx, s, again, f.victims); err != nil {
				return err
			}
		}
		for i, m := range members {
			if i > 0 {
				m = c.changed(m, f)
			}
			node, err := s.Place(ctx, m)
			if err != nil {
				return fmt.Errorf("place member %s/%s: %w", m.Namespace, m.Name, err)
			}
			if node == "" {
				f.fix.Proof.Verdict = Unproven
				f.fix.Proof.Why += ", unless the evicted pods come back first: nobody holds the room for a whole gang meanwhile"
				return nil
			}
		}
		return nil
	})
}

// takeBack places an evicted pod that has come back where it does most harm: on a node
// that was emptied, if one takes it.
func (c *finder) takeBack(ctx context.Context, s *whatif.Snapshot, again *corev1.Pod, victims []*corev1.Pod) error {
	fits, err := s.Fits(ctx, again)
	if err != nil || len(fits) == 0 {
		return err
	}
	node := fits[0]
	for _, v := range victims {
		if slices.Contains(fits, v.Spec.NodeName) {
			node = v.Spec.NodeName
		}
	}
	again.Spec.NodeName = node
	s.SetPod(again)
	return nil
}

// changed is a member of the gang as the fix leaves it.
func (c *finder) changed(m *corev1.Pod, f *candidate) *corev1.Pod {
	if !c.sameIncident(m) {
		return m
	}
	m = m.DeepCopy()
	for _, ch := range f.changes {
		if ch.pod != nil {
			ch.pod(m)
		}
	}
	return m
}

// incidentOf is the incident that a waiting pod is part of.
func (w *world) incidentOf(p *corev1.Pod) string {
	return watcher.IncidentID(w.workloadOf(p), watcher.Requests(p))
}

// workloadOf is whose pod it is.
func (w *world) workloadOf(p *corev1.Pod) watcher.Ref { return watcher.Topmost(p, w.state.Owner) }

// sameIncident says whether a pod is another of those that the case stands for.
func (c *finder) sameIncident(p *corev1.Pod) bool { return c.world.incidentOf(p) == c.Incident.ID }

// gangSets are the alternatives for a gang that lacks room, beside what else is the
// pod's own. Where not even one of it fits they are of use only when they make room.
func (c *finder) gangSets(own [][]change) [][]change {
	if c.isOwn(GangIncomplete) {
		return own
	}
	if len(c.gang.victims) == 0 {
		return nil
	}
	var sets [][]change
	for _, s := range own {
		for _, ch := range c.gangChanges(c.firstShort()) {
			sets = append(sets, append(slices.Clone(s), ch))
		}
	}
	return sets
}

// firstShort is the cause of the first node that lacks resources.
func (c *finder) firstShort() CauseID {
	rules := Rules()
	for _, v := range c.verdict.Nodes {
		for _, reason := range v.Blockers {
			if reason.Plugin == "NodeResourcesFit" {
				n := c.node(v.Node)
				b := c.read(n, reason)
				id, _ := tell(rules, c.Case, n, &b)
				return id
			}
		}
	}
	return GangIncomplete
}
