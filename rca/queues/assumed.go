package queues

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// pluginsGroups is the API of the groups that the coscheduling plugin schedules: it lets the members that
// fit wait for the others, each counted on a node that no object names (its Permit).
const pluginsGroups = "scheduling.x-k8s.io"

// Assumer is a group whose members its scheduler may count on nodes already, though none has one.
type Assumer struct {
	Namespace, Name string
	members         []*corev1.Pod
}

// Ref is the group for people.
func (a *Assumer) Ref() string { return view.ObjectRef("PodGroup", a.Namespace, a.Name) }

// Assumed is the group that may hold, in the memory of the pod's scheduler, the room that objects show: it
// says that the pod finds too little, and nodes have enough by what is bound to them. nil where it says no
// such thing, and where no other group of that scheduler waits (scheduler-plugins issue 713).
func (c *Case) Assumed() *Assumer {
	w, told := c.Refused()
	if !c.Fits || !told || !w.lasting || !strings.Contains(w.message, "Insufficient ") || c.Foreign(c.SchedulerName()) {
		return nil
	}
	mine := view.GangOf(c.Pod)
	groups := map[string]*Assumer{}
	var first *Assumer
	for _, p := range c.Cluster.State.Pods {
		k, name := view.Membership(p)
		if name == "" || k.API != pluginsGroups || view.GangOf(p) == mine || p.Spec.NodeName != "" || p.DeletionTimestamp != nil || view.Ended(p) || p.Spec.SchedulerName != c.SchedulerName() {
			continue
		}
		key := view.GangOf(p)
		if groups[key] == nil {
			groups[key] = &Assumer{Namespace: p.Namespace, Name: name}
		}
		groups[key].members = append(groups[key].members, p)
		if a := groups[key]; first == nil || len(a.members) > len(first.members) {
			first = a
		}
	}
	return first
}

// Finding tells of it, in the scheduler's own words.
func (a *Assumer) Finding(w Word, by string) *view.Finding {
	evidence := []diagnosis.Evidence{w.Evidence()}
	quiet := slices.IndexFunc(a.members, func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool { return k.Type == corev1.PodScheduled })
	})
	certainty := diagnosis.Possible
	if quiet >= 0 { // passed by all filters, and bound to nothing
		certainty = diagnosis.Likely
		evidence = append(evidence, diagnosis.Fact(view.PodRef(a.members[quiet]), "of that group, has no node, and its scheduler has not refused it",
			diagnosis.That("spec.nodeName", "", diagnosis.Absent, ""), diagnosis.That("status.conditions[type=PodScheduled]", "", diagnosis.Absent, "")))
	}
	return view.Found(certainty, fmt.Sprintf("%s finds no room, though nodes have it by what is bound to them: waiting members of %s may hold it in its memory", by, a.Ref()), evidence...)
}
