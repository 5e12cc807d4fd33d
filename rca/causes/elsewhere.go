package causes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/queues/full"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// What queues and schedulers other than the default one say is read in a room of its own;
// here it is said which of it is told, and before what.
var (
	// queueMisconfigured: the queue that the workload names does not exist, is closed, or
	// lacks what it names itself.
	queueMisconfigured = PodRule{ID: diagnosis.QueueMisconfigured, Aside: true, leads: true, Tell: func(c *Case) *finding {
		q := c.Queue.Broken()
		if q == nil {
			return nil
		}
		return found(&q.Finding)
	}}
	// queueNotAdmitted: Kueue holds the pod, or what makes it, until its Workload has quota;
	// Volcano never admits what its queue may not hold.
	queueNotAdmitted = PodRule{ID: diagnosis.QueueNotAdmitted, Tell: func(c *Case) *finding {
		if c.IsOwn(diagnosis.QueueMisconfigured) {
			return nil
		}
		f := c.Queue.NotAdmitted()
		if f == nil {
			return nil
		}
		if w := c.Queue.Queued(); w != nil {
			if since, _ := c.Queue.LetIn(w); !since.IsZero() {
				c.entitle(diagnosis.QueueNotAdmitted, "admitted by Kueue, and held still")
			}
		} else if _, lacks := c.Queue.NoWorkload(); lacks {
			c.entitle(diagnosis.QueueNotAdmitted, "Kueue made no Workload for it")
		}
		return found(f)
	}}
	// schedulerMissing: nobody who schedules under that name has ever spoken of any pod.
	schedulerMissing = PodRule{ID: diagnosis.SchedulerMissing, Tell: func(c *Case) *finding {
		if c.Queue.Grouped() && c.IsOwn(diagnosis.QueueMisconfigured) {
			return nil // of a group in such a queue nobody says anything
		}
		return found(c.Queue.Unanswered())
	}}
	// schedulerSilent: its scheduler speaks of others, and has said nothing of this pod. What
	// filters say of nodes is not why.
	schedulerSilent = PodRule{ID: diagnosis.SchedulerMissing, Aside: true, leads: true, Tell: func(c *Case) *finding {
		if slices.ContainsFunc(c.Own, func(r PodRule) bool { return !r.Aside || r.leads }) {
			return nil
		}
		f := c.Queue.Untaken()
		if f == nil {
			return nil
		}
		if _, ok := c.Queue.Refused(); ok { // of its group it has spoken
			return nil
		}
		c.entitle(diagnosis.SchedulerMissing, "its scheduler has said nothing of it")
		return found(f)
	}}
	// schedulerRefused: another scheduler decides about the pod, and its own words are what
	// is known of that. What the default scheduler's filters say of nodes is information.
	schedulerRefused = PodRule{ID: diagnosis.SchedulerRefused, Aside: true, leads: true, Tell: func(c *Case) *finding {
		if a := c.Queue.Assumed(); a != nil && !c.IsOwn(diagnosis.GangIncomplete) {
			w, _ := c.Queue.Refused()
			c.entitle(diagnosis.SchedulerRefused, "a waiting group may hold its room")
			return found(a.Finding(w, c.Queue.SchedulerName()))
		}
		if c.Elsewhere(c.Pod) == "" || c.IsOwn(diagnosis.QueueMisconfigured) || c.IsOwn(diagnosis.QueueNotAdmitted) {
			return nil
		}
		w, ok := c.Queue.Refused()
		if !ok || w.OfGang() && c.membersRefused() || (c.IsOwn(diagnosis.GangIncomplete) || c.IsOwn(diagnosis.WorkloadDeadlock)) && !w.OfQueue() || c.unregistered() {
			return nil
		}
		f := w.Finding(c.Queue)
		if k := queues.TooManyCards(c.Queue); k != nil && !w.OfQueue() {
			f.Says, f.Evidence = k.Says()+"; "+f.Says, append(f.Evidence, k.Evidence(c.Queue)...)
		}
		if q := full.Of(c.Queue); q != nil && !w.OfCard() && !w.OfTimeout() {
			f.Says, f.Evidence = q.Says()+"; "+f.Says, append(f.Evidence, q.Evidence(c.Queue)...)
		}
		if w.OfQueue() || c.Queue.Grouped() {
			f.Evidence = append(f.Evidence, slices.DeleteFunc(c.Queue.OfQueue(), func(e diagnosis.Evidence) bool { return slices.ContainsFunc(f.Evidence, e.Same) })...)
		}
		for _, p := range c.Queue.Named(w) {
			if says, evidence, is := stack.Of(c.Cluster).Trouble(p); is {
				f.Says += "; of that pod: " + says
				f.Evidence = append(f.Evidence, evidence)
			}
		}
		return found(f)
	}}
)

// found is what another room found out, as rules tell it; nil for nothing.
func found(f *view.Finding) *finding { return (*finding)(f) }

// queueCase is what of the case queues and schedulers look at.
func (c *Case) queueCase() *queues.Case {
	q := &queues.Case{Cluster: c.Cluster, Incident: c.Incident, Pod: c.Pod, Refusal: c.Refusal}
	if c.Suspended() {
		q.Held = &c.Refused.All[0]
	}
	return q
}

// Suspended says that its pods do not exist because a queue has not let what makes them
// begin.
func (c *Case) Suspended() bool { return c.Unborn && c.Refused.All[0].Held }

// BeyondNodes says whether what keeps the pod is such that no change of a node helps.
func (c *Case) BeyondNodes() bool {
	if c.IsOwn(diagnosis.QueueMisconfigured) || c.IsOwn(diagnosis.SchedulerMissing) && c.Queue.Untaken() != nil || c.Queue.Dispatched() != nil {
		return true
	}
	w, ok := c.Queue.Refused()
	return ok && c.IsOwn(diagnosis.SchedulerRefused) && (!w.OfRoom() || c.Queue.Assumed() != nil || queues.HasRoom(c.Queue))
}

// Quote adds to the first cause what others have said.
func (c *Case) Quote(causes []diagnosis.Cause) {
	if len(causes) == 0 {
		return
	}
	for _, w := range c.Queue.Words() {
		if e := w.Evidence(); !slices.ContainsFunc(causes[0].Evidence, e.Same) {
			causes[0].Evidence = append(causes[0].Evidence, e)
		}
	}
}

// decidedElsewhere lowers what the default scheduler's plugins have found, for a pod
// that another scheduler places.
func (c *Case) decidedElsewhere(causes []diagnosis.Cause) {
	if c.Queue.SchedulerName() == corev1.DefaultSchedulerName {
		return
	}
	other := c.Elsewhere(c.Pod) != ""
	agrees := other && c.unregistered()
	for i := range causes {
		switch k := &causes[i]; {
		case k.ID == diagnosis.VolumeConflict && terms.Missing(c.Cluster, c.Pod) != "": // no scheduler can place it, and no kubelet mount it
		case agrees && OfStack(k.ID) && k.Certainty != diagnosis.Possible:
			k.Certainty = diagnosis.Likely // its own word is that nothing is announced there
		case other && len(k.Nodes) > 0:
			k.Certainty = diagnosis.Possible
		case k.Certainty == diagnosis.Proven && (len(k.Nodes) > 0 || k.ID == diagnosis.GangIncomplete):
			k.Certainty = diagnosis.Likely
		}
	}
}

// unregistered says whether what the deciding scheduler misses is what the rules find of
// nodes: the first broken link of every node with GPUs is why it knows of no card there.
func (c *Case) unregistered() bool {
	if w, ok := c.Queue.Refused(); !ok || !w.OfUnregistered() {
		return false
	}
	broken := 0
	for _, n := range c.Cluster.SortedNodes() {
		switch {
		case !n.HasGPUs():
		case c.Broken(n) == nil:
			return false
		default:
			broken++
		}
	}
	return broken > 0
}

// Elsewhere names the scheduler of a pod when it does not run kube-scheduler's code
// alone; empty when it does, or when nothing says that it does not.
func (c *Case) Elsewhere(pod *corev1.Pod) string {
	by := pod.Spec.SchedulerName
	if by == "" || by == corev1.DefaultSchedulerName || c.IsOwn(diagnosis.SchedulerMissing) || !c.Queue.Foreign(by) {
		return ""
	}
	return by
}
