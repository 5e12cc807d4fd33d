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
func (c *Case) refusedRest(ctx context.Context, s *whatif.Snapshot, f *candidate) (string, error) {
	g := c.gang
	if g == nil || !g.known {
		return "", nil
	}
	placed, lacks := 1, g.lacks()-g.missing()
	for _, m := range c.gangOrder() {
		if m.Name == c.Pod.Name || placed == lacks {
			continue
		}
		node, err := s.Place(ctx, c.changed(m, f))
		if err != nil {
			return "", fmt.Errorf("place member %s/%s: %w", m.Namespace, m.Name, err)
		}
		if node != "" {
			placed++
		}
	}
	if placed < lacks {
		return fmt.Sprintf("it would fit, but only %d of %d members of its gang do", g.bound+placed, g.min), nil
	}
	return "", nil
}

// changed is a member of the gang as the fix leaves it.
func (c *Case) changed(m *corev1.Pod, f *candidate) *corev1.Pod {
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
func (c *Case) sameIncident(p *corev1.Pod) bool { return c.world.incidentOf(p) == c.Incident.ID }

// gangSets are the alternatives for a gang that lacks room, beside what else is the
// pod's own. Where not even one of it fits they are of use only when they make room.
func (c *Case) gangSets(own [][]change) [][]change {
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
func (c *Case) firstShort() CauseID {
	rules := Rules()
	for _, v := range c.verdict.Nodes {
		for _, b := range v.Blockers {
			if b.Plugin == "NodeResourcesFit" {
				id, _ := tell(rules, c, c.node(v.Node), b)
				return id
			}
		}
	}
	return GangIncomplete
}
