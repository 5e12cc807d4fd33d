package causes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Judge asks the rules about every blocker of every node.
func (c *Case) Judge() ([]diagnosis.NodeBlockers, []diagnosis.Cause) {
	rules := Rules()
	nodes, all := c.buffers()
	byID := tellings{}
	for _, r := range PodRules() {
		if (c.Unborn && !c.Queue.Grouped() || c.bound) && r.ID == diagnosis.SchedulerMissing {
			continue // no scheduler can have spoken of a pod that does not exist and has no group, and one has bound what has a node
		}
		if f := r.Tell(c); f != nil {
			r.Aside = r.Aside || r.refusal && !c.Unborn && !c.membersRefused() || r.bound && !c.bound
			c.Own = append(c.Own, r)
			byID.note(r.ID, "", f)
			if !r.Aside || r.leads {
				c.Everywhere[r.ID] = true
			}
		}
	}
	for i, v := range c.Verdict.Nodes {
		n := c.Cluster.NodeAt(i, v.Node)
		on, reasons := judging(c, v)
		nb := diagnosis.NodeBlockers{Name: v.Node, Blockers: all[len(all) : len(all) : len(all)+len(reasons)]}
		all = all[:len(all)+len(reasons)]
		for _, reason := range reasons {
			b := on.Read(n, reason)
			id, f := Tell(rules, on, n, &b)
			nb.Blockers = append(nb.Blockers, diagnosis.Blocker{Plugin: b.Plugin, Reason: b.Reason, Cause: id})
			byID.note(id, v.Node, f)
			if id != diagnosis.UntoleratedTaint { // the plugin names one taint of a node, and does not say who set it
				continue
			}
			if f := on.notReady(n); f != nil {
				nb.Blockers = append(nb.Blockers, diagnosis.Blocker{Plugin: b.Plugin, Reason: b.Reason, Cause: diagnosis.NodeNotReady})
				byID.note(diagnosis.NodeNotReady, v.Node, f)
			}
		}
		nodes = append(nodes, nb)
	}
	c.Judged = nodes
	entitleHost(c)
	entitleSelector(c)
	c.ofTemplate(byID)
	c.ofCounts(byID)
	c.byMessage(byID)
	if len(byID) == 0 {
		byID.note(diagnosis.Unknown, "", c.nothingBlocks())
	}
	byID.apart(nodes)
	causes := make([]diagnosis.Cause, 0, len(byID))
	for _, id := range diagnosis.Catalogue() {
		if cause := byID[id]; cause != nil {
			cause.Says = cause.whole()
			if told := ofAge[id]; told && !c.Cluster.State.Clocked() && cause.Certainty == diagnosis.Proven {
				cause.Certainty = diagnosis.Likely
			}
			causes = append(causes, cause.Cause)
		}
	}
	c.decidedElsewhere(causes)
	return nodes, causes
}

// ofAge are the causes that are told by how long something has taken: what a dump shows that
// does not say when it was taken may have passed long ago.
var ofAge = map[diagnosis.CauseID]bool{
	diagnosis.MIGConfigInProgress: true, diagnosis.MIGConfigStuck: true,
	diagnosis.ScalingUp: true, diagnosis.ScaleUpStuck: true,
}

// ofTemplate says of what node pools make what is told of nodes else.
func (c *Case) ofTemplate(byID tellings) {
	g := c.Growth()
	if g.OfTemplate == "" {
		return
	}
	if told := byID[g.OfTemplate]; told != nil {
		told.Evidence = append(told.Evidence, g.Template.Evidence...)
		return
	}
	byID.note(g.OfTemplate, "", found(g.Template))
}

// ofCounts claims on how many nodes selectors do not match alike, where that is said. Of pods that are made for a node each
// every node is claimed by itself.
func (c *Case) ofCounts(byID tellings) {
	told := byID[diagnosis.NodeSelectorMismatch]
	if told == nil || len(told.said) == 1 || view.MadeFor(c.Pod) != "" {
		return
	}
	for _, s := range told.most() {
		claim, ok := c.Labels.Counted(s.says, s.nodes)
		if ref := c.asker(); ok && s.nodes > 1 && ref != "" {
			told.Evidence = append(told.Evidence, diagnosis.Fact(ref, fmt.Sprintf("%s: %d nodes", s.says, s.nodes), claim))
		}
	}
}

// buffers hold what the rules will tell of the nodes: one allocation for the nodes, one
// for all their blockers.
func (c *Case) buffers() ([]diagnosis.NodeBlockers, []diagnosis.Blocker) {
	reasons := 0
	for _, v := range c.Verdict.Nodes {
		if m, ok := c.meant[v.Node]; ok {
			v.Blockers = m.blockers
		}
		reasons += len(v.Blockers)
	}
	return make([]diagnosis.NodeBlockers, 0, len(c.Verdict.Nodes)), make([]diagnosis.Blocker, 0, reasons)
}

// Tell is the cause of the first rule that knows the blocker, and what it found; Unknown,
// with the scheduler's own words, when none does.
func Tell(rules []Rule, c *Case, n *view.Node, b *blocker) (diagnosis.CauseID, *finding) {
	for i := range rules {
		r := &rules[i]
		if r.gpu && !b.gpu {
			continue
		}
		if f := r.Tell(c, n, b); f != nil {
			return r.ID, f
		}
	}
	return diagnosis.Unknown, &finding{Certainty: diagnosis.Possible, Says: b.Reason}
}

// nothingKeeps: the pod waits alone and a node would take it, so what the other nodes lack is not why it waits.
var nothingKeeps = PodRule{ID: diagnosis.Unknown, Tell: func(c *Case) *finding {
	settled := slices.ContainsFunc(c.Own, func(r PodRule) bool { return !r.Aside || r.leads })
	if settled || c.bound || c.Unborn || len(c.Incident.Pods) != 1 || len(c.Verdict.Feasible()) == 0 || c.Queue.SchedulerName() != corev1.DefaultSchedulerName {
		return nil
	}
	if fails := c.SchedulerFails(); fails != "" {
		c.entitle(diagnosis.Unknown, "the scheduler fails on it")
		if webhook, _ := admission.Denied(fails); webhook != "" {
			c.entitle(diagnosis.Unknown, "a webhook denies its binding")
		}
	}
	return c.nothingBlocks()
}}

// nothingBlocks is the finding when no filter refuses: the facts do not say why
// the pod waits.
func (c *Case) nothingBlocks() *finding {
	feasible, by := c.Verdict.Feasible(), c.Queue.SchedulerName()
	if says := c.SchedulerFails(); len(feasible) > 0 && says != "" {
		certainty, words := diagnosis.Possible, "the scheduler fails on it: "+view.Cut(says, 160)
		if webhook, why := admission.Denied(says); webhook != "" {
			certainty, words = diagnosis.Likely, "admission webhook "+webhook+" denies its binding: "+view.Quotable(why, 160)
		}
		return &finding{certainty, words + "; the scheduler's filters accept " + feasible[0] + " now", []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "PodScheduled: "+corev1.PodReasonSchedulerError+": "+says, append(c.taken(feasible[0]), diagnosis.That("status.conditions[type=PodScheduled].reason", "", diagnosis.Is, corev1.PodReasonSchedulerError), diagnosis.Says(says))...)}}
	}
	if len(feasible) > 0 && by != corev1.DefaultSchedulerName {
		but := ""
		if name := c.ofHAMi(); name != "" {
			but = ", but for " + string(name) + ", which HAMi counts by itself"
		}
		return &finding{diagnosis.Possible, fmt.Sprintf("the default scheduler's filters accept %s now%s; %s decides by its own", feasible[0], but, by),
			[]diagnosis.Evidence{diagnosis.Fact(c.podRef(), "schedulerName "+by+", waits, although the default scheduler would take "+strings.Join(feasible, ", ")+but, append(c.taken(feasible...), c.ofPod(diagnosis.That("spec.schedulerName", "", diagnosis.Is, by))...)...)}}
	}
	if len(feasible) > 0 {
		return &finding{diagnosis.Possible, "the scheduler's filters accept " + feasible[0] + " now; ruled out: every filter on it",
			[]diagnosis.Evidence{diagnosis.Fact(c.podRef(), "waits, although "+strings.Join(feasible, ", ")+" would take it", c.taken(feasible...)...)}}
	}
	return &finding{diagnosis.Possible, "the cluster has no node that could be judged", nil}
}

// taken claims what of it stands on objects that nodes would take the pod: its selector and
// affinity do, and each has left what it asks.
func (c *Case) taken(nodes ...string) []diagnosis.Claim {
	var out []diagnosis.Claim
	if c.Refusal.Phase != corev1.PodFailed { // one that a kubelet refused keeps its node's name
		out = c.ofPod(diagnosis.That("spec.nodeName", "", diagnosis.Absent, ""))
	}
	for _, node := range nodes {
		out = append(out, c.ofPod(diagnosis.That(diagnosis.Selects, node, diagnosis.Is, "true"))...)
		for _, name := range view.SortedNames(c.Wants) {
			q := c.Wants[name]
			if _, offered := c.Cluster.Nodes[node].Status.Allocatable[name]; !offered { // a device of a ResourceSlice stands for it
				continue
			}
			out = append(out, diagnosis.That(diagnosis.Free, string(name), diagnosis.AtLeast, q.String()).Of("Node/"+node))
		}
	}
	return out
}

// SchedulerFails is the error that the scheduler met behind its filters (when it reserved
// or bound a volume, say), as the pod's condition has it; empty: none.
func (c *Case) SchedulerFails() string {
	for _, k := range c.Refusal.Conditions {
		if k.Type == corev1.PodScheduled && k.Reason == corev1.PodReasonSchedulerError {
			return strings.Join(strings.Fields(k.Message), " ")
		}
	}
	return ""
}

// IsOwn says whether a cause that a node is told is the pod's own.
func (c *Case) IsOwn(id diagnosis.CauseID) bool {
	return slices.ContainsFunc(c.Own, func(r PodRule) bool { return r.ID == id })
}
