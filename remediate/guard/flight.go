package guard

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// nodeBusy keeps two plans from one node, however many nodes may be in flight.
func nodeBusy(q *question) Verdict {
	for r := range q.others() {
		if !r.Status.Phase.Begun() {
			continue
		}
		if node := q.shared(r); node != "" {
			return q.wait(time.Time{}, "plan %s works on node %s: wait until it has ended", Called(r), node)
		}
	}
	for _, n := range q.view.Nodes {
		if !q.nodes[n.Name] {
			continue
		}
		op, err := mark(n)
		switch {
		case err != nil:
			return refuse(v1alpha1.Refused, "%v: take it off ('unpend release %s'), then ask for a new plan", err, n.Name)
		case op == nil || op.ID == q.plan.UID || op.Quarantined != "" && q.opens(n):
		case op.Parked != "":
			return refuse(v1alpha1.Refused, "node %s is parked, cordoned on purpose by plan %.8s: %s; a person has to mend and release it ('unpend release %s'), then ask for a new plan", n.Name, op.Plan, op.Parked, n.Name)
		case op.Quarantined != "":
			return refuse(v1alpha1.Refused, "node %s is quarantined, cordoned on purpose by plan %.8s: %s; once its hardware is mended a person uncordons it, then ask for a new plan", n.Name, op.Plan, op.Quarantined)
		case !q.underWay(op.ID):
			return q.wait(time.Time{}, "node %s has the mark of plan %.8s (%s), which is not under way: nobody works on it any more, 'unpend release %s' gives it back", n.Name, op.Plan, op.Step, n.Name)
		default:
			return q.wait(time.Time{}, "node %s is marked by plan %.8s (%s): wait until it is released", n.Name, op.Plan, op.Step)
		}
	}
	return Verdict{}
}

// opens says whether the plan opens the node, and does nothing else to it.
func (q *question) opens(n *corev1.Node) bool {
	opens := false
	for i := range q.plan.Spec.Actions {
		if a := &q.plan.Spec.Actions[i]; a.Target.Kind == "Node" && a.Target.Name == n.Name {
			if a.Verb != diagnosis.VerbUncordon {
				return false
			}
			opens = true
		}
	}
	return opens
}

// underWay says whether the plan of a mark is: a mark without one was left by a process that
// is gone, and by nobody who could be waited for.
func (q *question) underWay(id types.UID) bool {
	return slices.ContainsFunc(q.view.Plans, func(r v1alpha1.Remediation) bool { return r.UID == id && r.Status.Phase.Begun() })
}

// nodesInFlight counts the nodes that are worked on: those that are marked, parked and
// quarantined ones left out, and one for each plan under way that has not marked any yet. Marks
// that cannot be read count, for what they stand for cannot be told.
func nodesInFlight(q *question) Verdict {
	if len(q.nodes) == 0 {
		return Verdict{}
	}
	var busy []string
	marked := map[types.UID]bool{}
	for _, n := range q.view.Nodes {
		op, err := mark(n)
		switch {
		case err != nil:
			busy = append(busy, n.Name+", whose mark cannot be read")
		case op == nil || op.Kept() || op.ID == q.plan.UID:
		case !q.underWay(op.ID):
			busy = append(busy, fmt.Sprintf("%s, which nobody works on any more: 'unpend release %s'", n.Name, n.Name))
		default:
			marked[op.ID] = true
			busy = append(busy, n.Name)
		}
	}
	for r := range q.others() {
		if !r.Status.Phase.Begun() || marked[r.UID] {
			continue
		}
		for range nodesOf(r) {
			busy = append(busy, "plan "+Called(r))
			break
		}
	}
	if len(busy) < q.limits.NodesInFlight {
		return Verdict{}
	}
	slices.Sort(busy)
	return q.wait(time.Time{}, "%d worked on already (%s), the limit is %d at once: wait until that has ended, or raise nodesInFlight in ConfigMap %s",
		len(busy), few(busy), q.limits.NodesInFlight, ConfigMap)
}
