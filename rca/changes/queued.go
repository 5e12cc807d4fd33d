package changes

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// stopQueued has Kueue stop a Workload that has what the pod lacks on the node, where the pod's own Workload is of higher
// priority: Kueue has admitted both, for its quota is more than the nodes have, so it preempts nobody, and pods of the lower one
// that are evicted are made again beside the one that waits (kueue issue 4782).
func stopQueued(c *Bench, n *view.Node, cause diagnosis.CauseID, lack view.Deficits) (edit.Change, bool) {
	mine, queued := c.Queue.Priority(c.Cluster.TeamOf(c.Pod))
	if !queued {
		return edit.Change{}, false
	}
	var best *lower
	for _, p := range n.Pods {
		team := c.Cluster.TraitsOf(p).Team
		priority, of := c.Queue.Priority(team)
		if !of || priority >= mine || !enough(n, lack, func(p *corev1.Pod) bool { return c.Cluster.TraitsOf(p).Team == team }) {
			continue
		}
		l := &lower{team: team, priority: priority, pods: runningOf(c, team)}
		if best == nil || l.compare(best) < 0 {
			best = l
		}
	}
	if best == nil {
		return edit.Change{}, false
	}
	name := fmt.Sprintf("workloads.kueue.x-k8s.io %s", best.team.Name)
	return edit.Change{Kind: diagnosis.EvictPods, Cause: cause, Victims: best.pods, Below: true, Manual: true, Minutes: 1, Risk: diagnosis.MediumRisk,
		Title: fmt.Sprintf("have Kueue stop Workload %s/%s, of priority %d below %d: its quota lets in both, and nodes have no room for both", best.team.Namespace, best.team.Name, best.priority, mine),
		Commands: []string{fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"active":false}}'  # all its pods stop; what they have not saved is lost`, best.team.Namespace, name),
			fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"active":true}}'  # once the other has begun: it queues again`, best.team.Namespace, name),
			"kubectl get clusterqueues.kueue.x-k8s.io -o yaml  # a nominalQuota of no more than nodes have lets Kueue preempt by itself (preemption.withinClusterQueue: LowerPriority)"}}, true
}

// lower is a Workload of lower priority with its pods.
type lower struct {
	team     view.Team
	priority int64
	pods     []*corev1.Pod
}

func (l *lower) compare(m *lower) int {
	return cmp.Or(cmp.Compare(l.priority, m.priority), len(l.pods)-len(m.pods), cmp.Compare(l.team.Namespace, m.team.Namespace), cmp.Compare(l.team.Name, m.team.Name))
}

// enough says whether the node has enough for the pod once such pods have left it.
func enough(n *view.Node, lack view.Deficits, leaves func(*corev1.Pod) bool) bool {
	for name, missing := range lack {
		for _, p := range n.Pods {
			if leaves(p) {
				missing -= n.Contribution(p, name)
			}
		}
		if missing > 0 {
			return false
		}
	}
	return len(lack) > 0
}

// runningOf are the pods of a team that have a node and have not ended.
func runningOf(c *Bench, of view.Team) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace == of.Namespace && p.Spec.NodeName != "" && !view.Ended(p) && p.DeletionTimestamp == nil && c.Cluster.TeamOf(p) == of {
			out = append(out, p)
		}
	}
	return out
}
