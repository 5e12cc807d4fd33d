package queues

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// schedulerSpeaksWithin is how long a scheduler may take to say its first word of
// a pod: under load the API client's limits come first (some 50 events a second).
const schedulerSpeaksWithin = time.Minute

// Unanswered is that nobody who schedules under the pod's schedulerName has ever spoken of
// any pod; nil where somebody has, or where silence proves nothing: a pod that is gated, or
// whose claims are missing, is in nobody's queue.
func (c *Case) Unanswered() *view.Finding {
	name := c.SchedulerName()
	if len(c.Pod.Spec.SchedulingGates) > 0 || len(c.Pod.Spec.ResourceClaims) > 0 || c.Refusal.Phase == corev1.PodFailed {
		return nil
	}
	st := c.Cluster.State
	// A dump may have been written by hand, without conditions: that nobody serves
	// a name of the user's own choosing is then all that can be told.
	if st.Live && st.Now.Sub(c.Incident.Since) < schedulerSpeaksWithin || !st.Live && name == corev1.DefaultSchedulerName {
		return nil
	}
	if down := Down(c); down != nil && unheard(c) {
		return view.Found(diagnosis.Likely, fmt.Sprintf("no scheduler answers to schedulerName %q now: %s", name, down.Says()), c.unspoken("", down.evidence())...)
	}
	if c.Spoken(name) {
		return nil
	}
	if p := Runs(c); p != nil { // by another name, it may be; or it takes nothing in
		return view.Found(diagnosis.Likely, fmt.Sprintf("%s/%s, which schedules for %q by its name, runs, and has said nothing of any pod", p.Namespace, p.Name, name),
			c.unspoken("", diagnosis.Fact(view.PodRef(p), "is Ready", view.ConditionIs(string(corev1.PodReady), "True")), diagnosis.Fact(c.podRef(), "no pod of that schedulerName was ever bound or judged, no event is from it",
				diagnosis.That("judged["+name+"]", "", diagnosis.Absent, "").Of("Pod/*"), diagnosis.That("by", "", diagnosis.IsNot, name).Of("Event/*")))...)
	}
	certainty := diagnosis.Likely
	if name != corev1.DefaultSchedulerName && st.Unread["Pod"] == "" {
		certainty = diagnosis.Proven
	}
	return view.Found(certainty, fmt.Sprintf("no scheduler answers to schedulerName %q", name),
		c.unspoken("", diagnosis.Fact(c.podRef(), "no pod of that schedulerName was ever bound or judged, no event is from it",
			diagnosis.That("judged["+name+"]", "", diagnosis.Absent, "").Of("Pod/*"), diagnosis.That("by", "", diagnosis.IsNot, name).Of("Event/*")))...)
}

// Untaken is that a scheduler which places others has said nothing of this pod, no condition and
// no event, in longer than it takes to look at one: the pod is somewhere in its queue, and what
// keeps it there is in no object (a queue that retries others for ever, slurm-bridge issue 45).
// nil where it has spoken, or where silence proves nothing.
func (c *Case) Untaken() *view.Finding {
	name, st := c.SchedulerName(), c.Cluster.State
	waited := st.Now.Sub(c.Incident.Since)
	if name == corev1.DefaultSchedulerName || c.Incident.Since.IsZero() || len(c.Pod.Spec.SchedulingGates) > 0 || len(c.Pod.Spec.ResourceClaims) > 0 || c.Refusal.Phase == corev1.PodFailed ||
		waited < schedulerSpeaksWithin || !c.Spoken(name) || !unheard(c) || Down(c) != nil {
		return nil
	}
	return view.Found(diagnosis.Likely, fmt.Sprintf("%s, which places other pods, has said nothing of it in %s", view.Quotable(name, 63), view.Age(waited)),
		c.unspoken(", and no event of that scheduler")...)
}

// waitsRef is what its scheduler looks at: the pod, or the group that stands for pods that are not
// made yet.
func (c *Case) waitsRef() string {
	if c.Grouped() {
		return view.ObjectRef("PodGroup", c.Pod.Namespace, c.Held.Group)
	}
	return c.podRef()
}

// unspoken is that no scheduler has judged the pod, with what more is told of one, or its group.
func (c *Case) unspoken(besides string, more ...diagnosis.Evidence) []diagnosis.Evidence {
	if c.Grouped() {
		return append(append(c.stands(), more...), diagnosis.Fact(c.waitsRef(), "no condition"+besides, diagnosis.That("status.conditions", "", diagnosis.Absent, "")))
	}
	return append([]diagnosis.Evidence{diagnosis.Fact(c.podRef(), fmt.Sprintf("schedulerName %q, no PodScheduled condition%s", c.SchedulerName(), besides), c.unjudged()...)}, more...)
}

// unjudged claims that of a pod.
func (c *Case) unjudged() []diagnosis.Claim {
	out := []diagnosis.Claim{diagnosis.That("status.conditions[type=PodScheduled]", "", diagnosis.Absent, "")}
	if name := c.Pod.Spec.SchedulerName; name != "" {
		out = append(out, diagnosis.That("spec.schedulerName", "", diagnosis.Is, name))
	}
	return c.Cluster.OfPod(c.Pod, out...)
}

// Spoken says whether a scheduler of that name has left any trace.
func (c *Case) Spoken(name string) bool {
	for _, p := range c.Cluster.State.Pods {
		if p.Spec.SchedulerName != name && (p.Spec.SchedulerName != "" || name != corev1.DefaultSchedulerName) {
			continue
		}
		if p.Spec.NodeName != "" && name != corev1.DefaultSchedulerName { // pods that no scheduler places have the default's name
			return true
		}
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodScheduled && cond.Reason != corev1.PodReasonSchedulingGated {
				return true
			}
		}
	}
	for _, e := range c.Cluster.State.Events {
		if scaling.Speaker(e) == name {
			return true
		}
	}
	return name == "volcano" && slices.ContainsFunc(c.Cluster.State.PodGroups.Volcano, func(o *unstructured.Unstructured) bool { return len(nested(o, "status", "conditions")) > 0 })
}
