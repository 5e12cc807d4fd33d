package rca

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// judge asks the rules about every blocker of every node.
func (c *Case) judge() ([]NodeBlockers, []Cause) {
	rules := Rules()
	nodes, all := c.room()
	byID := tellings{}
	for _, r := range PodRules() {
		if (c.unborn || c.bound) && r.ID == SchedulerMissing {
			continue // no scheduler can have spoken of a pod that does not exist, and one has bound what has a node
		}
		if f := r.Tell(c); f != nil {
			r.Aside = r.Aside || r.refusal && !c.unborn || r.bound && !c.bound
			c.own = append(c.own, r)
			byID.note(r.ID, "", f)
			if !r.Aside {
				c.everywhere[r.ID] = true
			}
		}
	}
	for i, v := range c.verdict.Nodes {
		n := c.world.nodeAt(i, v.Node)
		nb := NodeBlockers{Name: v.Node, Blockers: all[len(all) : len(all) : len(all)+len(v.Blockers)]}
		all = all[:len(all)+len(v.Blockers)]
		for _, reason := range v.Blockers {
			b := c.read(n, reason)
			id, f := tell(rules, c, n, &b)
			nb.Blockers = append(nb.Blockers, Blocker{b.Plugin, b.Reason, id})
			byID.note(id, v.Node, f)
			if id != UntoleratedTaint { // the plugin names one taint of a node, whoever set it
				continue
			}
			if f := c.notReady(n); f != nil {
				nb.Blockers = append(nb.Blockers, Blocker{b.Plugin, b.Reason, NodeNotReady})
				byID.note(NodeNotReady, v.Node, f)
			}
		}
		nodes = append(nodes, nb)
	}
	c.judged = nodes
	c.byMessage(byID)
	if len(byID) == 0 {
		byID.note(Unknown, "", c.nothingBlocks())
	}
	causes := make([]Cause, 0, len(byID))
	for _, id := range Catalogue() {
		if cause := byID[id]; cause != nil {
			causes = append(causes, cause.Cause)
		}
	}
	c.decidedElsewhere(causes)
	return nodes, causes
}

// room is for what will be told of the nodes: of all of them in one piece.
func (c *Case) room() ([]NodeBlockers, []Blocker) {
	reasons := 0
	for i := range c.verdict.Nodes {
		reasons += len(c.verdict.Nodes[i].Blockers)
	}
	return make([]NodeBlockers, 0, len(c.verdict.Nodes)), make([]Blocker, 0, reasons)
}

func tell(rules []Rule, c *Case, n *nodeView, b *blocker) (CauseID, *finding) {
	for i := range rules {
		r := &rules[i]
		if r.gpu && !b.gpu {
			continue
		}
		if f := r.Tell(c, n, b); f != nil {
			return r.ID, f
		}
	}
	return Unknown, &finding{certainty: Possible, says: b.Reason}
}

// nothingBlocks is the finding when no filter refuses: the facts do not say why
// the pod waits.
func (c *Case) nothingBlocks() *finding {
	feasible, by := c.verdict.Feasible(), c.schedulerName()
	if says := c.schedulerFails(); len(feasible) > 0 && says != "" {
		return &finding{Possible, "the scheduler fails on it: " + cut(says, 160) + "; its filters accept " + feasible[0] + " now", []Evidence{{c.ref(), "PodScheduled: " + corev1.PodReasonSchedulerError + ": " + says}}}
	}
	if len(feasible) > 0 && by != corev1.DefaultSchedulerName {
		return &finding{Possible, fmt.Sprintf("the default scheduler's filters accept %s now; %s decides by its own", feasible[0], by),
			[]Evidence{{c.ref(), "schedulerName " + by + ", waits, although the default scheduler would take " + strings.Join(feasible, ", ")}}}
	}
	if len(feasible) > 0 {
		return &finding{Possible, "the scheduler's filters accept " + feasible[0] + " now; ruled out: every filter on it",
			[]Evidence{{"Pod/" + c.Pod.Namespace + "/" + c.Pod.Name, "waits, although " + strings.Join(feasible, ", ") + " would take it"}}}
	}
	return &finding{Possible, "the cluster has no node that could be judged", nil}
}

// schedulerFails is the error that the scheduler met behind its filters (when it reserved
// or bound a volume, say), as the pod's condition has it; empty: none.
func (c *Case) schedulerFails() string {
	for _, k := range c.refusal.Conditions {
		if k.Type == corev1.PodScheduled && k.Reason == corev1.PodReasonSchedulerError {
			return strings.Join(strings.Fields(k.Message), " ")
		}
	}
	return ""
}

// isOwn says whether a cause that a node is told is the pod's own.
func (c *Case) isOwn(id CauseID) bool {
	return slices.ContainsFunc(c.own, func(r PodRule) bool { return r.ID == id })
}
