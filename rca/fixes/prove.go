package fixes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// prove makes the fix on a fork of the cluster and asks the scheduler's code
// whether the pod now has a node, and then where its victims go.
func (c *Finder) prove(ctx context.Context, f *candidate) error {
	for _, ch := range f.changes {
		if ch.Untestable != "" {
			f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Unproven, Why: ch.Untestable}
			if len(f.victims) > 0 && len(ch.Victims) == 0 { // nobody is stopped for what nobody can show to help
				f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Refuted, Why: "it stops pods for what cannot be tried: " + ch.Untestable}
			}
			return nil
		}
	}
	return whatif.Try(c.Cluster.Snapshot, func(s *whatif.Snapshot) error {
		pod := c.Pod
		for _, n := range c.Cluster.Unsound() {
			s.SetNode(n.Sound(f.victims))
		}
		for _, node := range f.edited() {
			s.SetNode(node)
		}
		for _, ch := range f.changes {
			var err error
			if pod, err = ch.Apply(s, pod); err != nil {
				return err
			}
		}
		o, err := c.play(ctx, s, f, pod)
		placed := o.node
		if err != nil {
			return err
		}
		if why := c.refusedStill(f, pod); why != "" {
			f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Refuted, Why: why}
			return nil
		}
		f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Refuted, Why: "the scheduler's filters still refuse every node"}
		if placed == "" {
			return nil
		}
		if slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Not == placed }) {
			f.fix.Proof = c.refusedAgain(f, placed)
			return nil
		}
		if slices.ContainsFunc(f.changes, asksOtherwise) && c.midChange(placed) {
			f.fix.Proof.Why = "MIG manager is not done with " + placed + ": what it offers now it may not offer in a minute"
			return nil
		}
		if claim := c.Cluster.GivenUp(placed); claim != "" {
			f.fix.Proof.Why = "Karpenter does not take " + placed + " for its own and deletes its machine: NodeClaim " + claim + " has not registered"
			return nil
		}
		members := map[string]bool{}
		if why, err := c.refusedRest(ctx, s, f, members); why != "" || err != nil {
			f.fix.Proof.Why = why
			return err
		}
		f.fix.Proof = diagnosis.Proof{Verdict: diagnosis.Schedules, Node: placed, Why: "the scheduler's filters accept " + placed + " on a copy of the cluster"}
		f.accepted = true
		if c.Unborn {
			f.fix.Proof.Why = "by the arithmetic of quotas and limits the API server takes it; " + f.fix.Proof.Why
		}
		if by := c.Elsewhere(pod); by != "" {
			f.fix.Proof.Verdict, f.fix.Proof.Why = diagnosis.Unproven, fmt.Sprintf("the default scheduler's filters accept %s on a copy of the cluster; %s decides by its own", placed, by)
		}
		if err := c.proveGang(ctx, s, f, pod); err != nil {
			return err
		}
		c.position(f, placed)
		c.until(f)
		if claim, by := kubelet.HeldElsewhere(c.Cluster, pod, placed, f.leaves); by != nil {
			f.fix.Proof.Why += fmt.Sprintf(", but its PersistentVolumeClaim %s may be on one node at a time, and %s/%s has it on %s", claim, by.Namespace, by.Name, by.Spec.NodeName)
			if f.fix.Proof.Verdict = diagnosis.Unproven; len(f.victims) > 0 { // nobody is stopped for that
				f.fix.Proof.Verdict = diagnosis.Refuted
				return nil
			}
		}
		if !c.rolls(f) {
			more, err := c.playRest(ctx, s, f, members)
			if err != nil {
				return err
			}
			o.runs += more
		}
		if err := c.proveVictims(ctx, s, f); err != nil || f.fix.Proof.Verdict != diagnosis.Schedules {
			return err
		}
		c.reckon(f, o, pod)
		if n := f.remade(); n > 1 {
			f.fix.Proof.Why += fmt.Sprintf("; by hand, for GPUs of %d nodes are re-made: the guard-rail nodesInFlight has one worked on at a time", n)
		}
		return nil
	})
}

// leaves says whether a pod is gone before the fix has the waiting one begin.
func (f *candidate) leaves(p *corev1.Pod) bool {
	if r := f.rolling; r != nil && slices.Contains(r.Running, p) { // else the old one stays until the new one runs
		return r.AtOnce || r.Unavailable > 0
	}
	return slices.Contains(f.victims, p) || slices.Contains(f.restarts, p)
}

// refusedAgain is of a pod that comes back to the node whose kubelet refuses it. A pod that is made again may as well come
// to another, if one is there for it: the scheduler chooses.
func (c *Finder) refusedAgain(f *candidate, placed string) diagnosis.Proof {
	refuted := diagnosis.Proof{Verdict: diagnosis.Refuted, Why: "the scheduler chooses " + placed + " again, whose kubelet would refuse it again"}
	at := slices.IndexFunc(c.Verdict.Feasible(), func(name string) bool { return name != placed })
	if at < 0 || f.fix.Kind != diagnosis.RecreatePod {
		return refuted
	}
	return diagnosis.Proof{Verdict: diagnosis.Unproven, Why: "the scheduler's filters accept " + c.Verdict.Feasible()[at] + ", and " + placed + " too, whose kubelet would refuse it again: which of them it chooses nobody can tell"}
}

// midChange says whether MIG manager has begun something on the node and not ended it well.
func (c *Finder) midChange(node string) bool {
	for _, n := range c.Judged {
		if n.Name == node {
			return slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return mend.Unsettled(b.Cause) })
		}
	}
	return false
}

// asksOtherwise says that a change asks for something else than was asked.
func asksOtherwise(ch edit.Change) bool { return ch.Kind == diagnosis.ChangeRequest && !ch.Adds }

// edited are the nodes that the fix changes, as it leaves them.
func (f *candidate) edited() []*corev1.Node {
	var nodes []*corev1.Node
	for _, ch := range f.changes {
		if ch.Node == nil {
			continue
		}
		on := cmp.Or(ch.On, f.node)
		at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == on.Name })
		if at < 0 {
			at, nodes = len(nodes), append(nodes, on.Sound(f.victims).DeepCopy())
		}
		ch.Node(nodes[at])
	}
	return nodes
}

// until turns the verdict of a fix that needs events first, and names all of them. A
// budget that does not allow its evictions is one: the API server would refuse them.
func (c *Finder) until(f *candidate) {
	var events []string
	for _, ch := range f.changes {
		if ch.Until != "" && !slices.Contains(events, ch.Until) {
			events = append(events, ch.Until)
		}
	}
	// The scheduler does not ask the Eviction API for the pods that it preempts.
	if n, budget := c.Cluster.Budgets.Beyond(f.victims); n > 0 && f.fix.Kind != diagnosis.RaisePriority {
		events = append(events, fmt.Sprintf("PodDisruptionBudget %s allows %d more of these evictions", budget, n))
	}
	if len(events) > 0 {
		f.fix.Proof.Verdict, f.fix.Proof.Why = diagnosis.Waits, "accepted on a copy once "+strings.Join(events, " and ")
	}
}

// position names the GPU that is re-made. MIG manager chooses the start itself,
// so none is promised.
func (c *Finder) position(f *candidate, placed string) {
	for _, ch := range f.changes {
		if ch.Relayout != nil && placed == cmp.Or(ch.On, f.node).Name && len(ch.Relayout.Remade) > 0 {
			gpu := ch.Relayout.Roomiest(c.Asks)
			f.fix.Proof.GPU = &gpu
		}
	}
}

// proveVictims places each victim again, as its controller would.
func (c *Finder) proveVictims(ctx context.Context, s *whatif.Snapshot, f *candidate) error {
	if len(f.victims) == 0 {
		return nil
	}
	var back, again []*corev1.Pod
	for _, v := range f.victims {
		if slices.Contains(f.lost.Pods, v) {
			f.gone = append(f.gone, v)
			continue
		}
		next := v.DeepCopy()
		next.Spec.NodeName, next.Name = "", v.Name+"-again"
		back, again = append(back, v), append(again, next)
	}
	nodes, err := placeAll(ctx, s, again)
	if err != nil {
		return fmt.Errorf("place the evicted pods again: %w", err)
	}
	for i, v := range back {
		if nodes[i] == "" {
			f.thenWait = append(f.thenWait, v)
		}
	}
	gone, landed := len(f.gone), len(f.victims)-len(f.gone)-len(f.thenWait)
	f.stranded = len(f.victims) - landed
	p := &f.fix.Proof
	if f.stranded > 0 && slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Kind == diagnosis.MovePods }) {
		*p = diagnosis.Proof{Verdict: diagnosis.Refuted, Why: fmt.Sprintf("no other place for %d of the %d pods that were to move", f.stranded, len(f.victims))}
		return nil
	}
	switch {
	case gone > 0:
		p.Victims, f.fix.Risk = diagnosis.VictimsGone, diagnosis.HighRisk
		p.Why += fmt.Sprintf("; victims that do not come back%s: %d of %d", f.whyGone(), gone, len(f.victims))
		f.gone = append(f.gone, f.lost.With...)
	case landed < len(f.victims):
		p.Victims, f.fix.Risk = diagnosis.VictimsWait, f.fix.Risk.With(diagnosis.MediumRisk)
		p.Why += fmt.Sprintf("; victims will wait: %d of %d", len(f.victims)-landed, len(f.victims))
	default:
		p.Victims = diagnosis.VictimsLand
		p.Why += "; each evicted pod was placed again"
		f.move()
	}
	if gone < len(f.victims) && slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Cause == diagnosis.DRADevicesInUse && len(ch.Victims) > 0 }) {
		// A nomination keeps CPU and memory, not devices (dynamicresources.go has no AddPod).
		f.fix.Risk = f.fix.Risk.With(diagnosis.MediumRisk)
		p.Why += "; the scheduler keeps no devices for a pod that waits, so a successor of an evicted one may take them back first"
	}
	return nil
}

// whyGone is why victims do not come back.
func (f *candidate) whyGone() string {
	if len(f.lost.Jobs) == 0 {
		if slices.ContainsFunc(f.lost.Pods, view.ComesBack) {
			return ", as their Job makes none of that index again"
		}
		return ", having no controller"
	}
	j := f.lost.Jobs[0]
	why := fmt.Sprintf(", as job/%s stands no more failures (backoffLimit %d", j.Name, ptr.Deref(j.Spec.BackoffLimit, cluster.DefaultBackoff))
	if n := j.Status.Failed; n > 0 {
		why += fmt.Sprintf(", %d failed", n)
	}
	why += ") and an eviction counts as one"
	if n := len(f.lost.Jobs); n > 1 {
		why += fmt.Sprintf(", nor do %d more", n-1)
	}
	if n := len(f.lost.With); n > 0 {
		why += fmt.Sprintf("; that ends %s, too", view.CountOf(n, "other pod"))
	}
	return why
}

// move renames evictions whose victims all land: they are moves.
func (f *candidate) move() {
	for i, k := range f.fix.Kinds {
		if k == diagnosis.EvictPods {
			f.fix.Kinds[i] = diagnosis.MovePods
		}
	}
	if f.fix.Kind == diagnosis.EvictPods {
		f.fix.Kind = diagnosis.MovePods
	}
}

// refusedStill says why the API server would refuse the pod after a fix as well;
// empty when it would take it, or when the pod exists. What a person is asked to do
// is taken as done.
func (c *Finder) refusedStill(f *candidate, pod *corev1.Pod) string {
	if !c.Unborn || slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Kind == diagnosis.Manual }) {
		return ""
	}
	if bad := admission.InvalidRequests(pod); len(bad) > 0 {
		return bad[0].Says()
	}
	if over := admission.Violations(c.Cluster.State, pod); len(over) > 0 {
		return over[0].Says()
	}
	hard, leave := f.limits()
	for _, q := range admission.Quotas(c.Cluster.State, pod, hard, leave) {
		if q.Demand != "" {
			return q.DemandSays()
		}
		if len(q.Exceeded()) > 0 {
			return q.Says()
		}
	}
	return ""
}

// limits are what quotas allow after a fix, by name, and the pods that no longer count.
func (f *candidate) limits() (hard map[string]corev1.ResourceList, leave []*corev1.Pod) {
	hard = map[string]corev1.ResourceList{}
	for _, ch := range f.changes {
		maps.Copy(hard, ch.Hard)
		if ch.Kind == diagnosis.Wait {
			leave = append(leave, ch.Victims...)
		}
	}
	return hard, leave
}
