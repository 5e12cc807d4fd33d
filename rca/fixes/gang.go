package fixes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/whatif"
)

// refusedRest places, after the pod, the rest of what its gang lacks, changed like the
// pod where they are of the same workload. It says why the gang still waits; empty
// when the pod has no gang, or all of it fits. The names of those of the incident are put
// into placed.
func (c *Finder) refusedRest(ctx context.Context, s *whatif.Snapshot, f *candidate, placed map[string]bool) (string, error) {
	g := c.Gang
	if g == nil || !g.Known {
		return "", nil
	}
	for _, m := range c.rest() {
		node, err := s.Place(ctx, c.changed(m, f))
		if err != nil {
			return "", fmt.Errorf("place member %s/%s: %w", m.Namespace, m.Name, err)
		}
		if node == "" {
			return fmt.Sprintf("it would fit, but not all %d members of its gang do", g.Min), nil
		}
		if placed[m.Name] = c.sameIncident(m); placed[m.Name] {
			f.places[m.Name] = node
		}
	}
	return "", nil
}

// rest are the other members that the gang lacks, as many as exist of the least number.
func (c *Finder) rest() []*corev1.Pod {
	order := slices.DeleteFunc(c.Gang.Order(), func(m *corev1.Pod) bool { return m.Name == c.Pod.Name })
	return order[:min(len(order), max(0, c.Gang.Lacks()-1))]
}

// proveGang completes the proof of a fix that lets a whole gang in. Until all of it
// fits nobody holds room for it, and pods that come back after their eviction come
// first: where they could take it again, evictions prove nothing.
func (c *Finder) proveGang(ctx context.Context, s *whatif.Snapshot, f *candidate, pod *corev1.Pod) error {
	g := c.Gang
	if g == nil || !g.Known || g.Missing() > 0 {
		return nil
	}
	f.fix.Proof.Why += fmt.Sprintf("; with it all %d members of its gang have a node", g.Min)
	if len(f.victims) == 0 {
		return nil
	}
	members := append([]*corev1.Pod{pod}, c.rest()...)
	return whatif.Try(s, func(s *whatif.Snapshot) error {
		for _, m := range members {
			s.DeletePod(m.Namespace, m.Name)
		}
		for _, v := range f.victims {
			if slices.Contains(f.lost.Pods, v) {
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
				f.fix.Proof.Verdict = diagnosis.Unproven
				f.fix.Proof.Why += ", unless the evicted pods come back first: nobody holds the room for a whole gang meanwhile"
				return nil
			}
		}
		return nil
	})
}

// takeBack places an evicted pod that has come back where it does most harm: on a node
// that was emptied, if one takes it.
func (c *Finder) takeBack(ctx context.Context, s *whatif.Snapshot, again *corev1.Pod, victims []*corev1.Pod) error {
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
func (c *Finder) changed(m *corev1.Pod, f *candidate) *corev1.Pod {
	if !c.sameIncident(m) {
		return m
	}
	m = m.DeepCopy()
	for _, ch := range f.changes {
		if ch.Pod != nil {
			ch.Pod(m)
		}
	}
	return m
}

// sameIncident says whether a pod is another of those that the case stands for.
func (c *Finder) sameIncident(p *corev1.Pod) bool { return c.Cluster.IncidentOf(p) == c.Incident.ID }

// gangSets are the alternatives for a gang that lacks room, beside what else is the
// pod's own. Where not even one of it fits they are of use only when they make room.
func (c *Finder) gangSets(own [][]edit.Change) [][]edit.Change {
	if c.IsOwn(diagnosis.GangIncomplete) {
		return own
	}
	if len(c.Gang.Victims) == 0 {
		return nil
	}
	var sets [][]edit.Change
	for _, s := range own {
		for _, ch := range c.GangChanges(c.firstShort()) {
			sets = append(sets, append(slices.Clone(s), ch))
		}
	}
	return sets
}

// firstShort is the cause of the first node that lacks resources.
func (c *Finder) firstShort() diagnosis.CauseID {
	rules := causes.Rules()
	for _, v := range c.Verdict.Nodes {
		for _, reason := range v.Blockers {
			if reason.Plugin == "NodeResourcesFit" {
				n := c.Node(v.Node)
				b := c.Read(n, reason)
				id, _ := causes.Tell(rules, c.Case, n, &b)
				return id
			}
		}
	}
	return diagnosis.GangIncomplete
}
