package queues

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Word is what others than the default scheduler have said of a waiting pod, or of
// its gang. It is quoted and never believed: only live objects prove anything, and
// the default scheduler's plugins are not those of the scheduler that decides here.
type Word struct {
	about, component, reason, message string // about: the object, as evidence names it
	at                                time.Time
	lasting                           bool // a condition, which stands as long as it holds
}

// refusing are the reasons of events that say no: Karpenter's and Volcano's
// FailedScheduling, KAI's Unschedulable and NotReady (the gang lacks pods), HAMi's
// FilteringFailed. Each is shared by several, so the component is told with it.
// YuniKorn's PodUnschedulable, and what KAI and HAMi say when a pod cannot be bound.
var refusing = []string{"FailedScheduling", "Unschedulable", "NotReady", "FilteringFailed", "PodUnschedulable", "BindingError", "BindingFailed", "FailedBinding"}

// ownCode are the schedulers that are not kube-scheduler's code, or that an extender
// overrules (HAMi): what its filters accept they may refuse.
var ownCode = []string{"volcano", "kai-scheduler", "hami-scheduler", "yunikorn", "runai-scheduler", "koord-scheduler"}

// maxQuote is the length of a quotation in characters.
const maxQuote = 240

// Words lists the newest refusal of each reason, by component.
func (c *Case) Words() []Word {
	newest := map[string]Word{}
	note := func(w Word) {
		key := w.component + "\x00" + w.about + "\x00" + w.reason
		if w.OfCard() { // an event for each reason
			key += "\x00" + w.message
		}
		if old, ok := newest[key]; !ok || cmp.Or(w.at.Compare(old.at), strings.Compare(w.message, old.message)) > 0 {
			newest[key] = w
		}
	}
	for e, ref := range c.spoken {
		by := scaling.Speaker(e)
		if by != "" && by != corev1.DefaultSchedulerName && slices.Contains(refusing, e.Reason) {
			note(Word{about: ref, component: by, reason: e.Reason, message: e.Message, at: scaling.Seen(e)})
		}
	}
	if by := c.SchedulerName(); by != corev1.DefaultSchedulerName {
		for _, k := range c.Refusal.Conditions {
			if k.Type == corev1.PodScheduled && k.Status == corev1.ConditionFalse && k.Message != "" && k.Reason != corev1.PodReasonSchedulingGated {
				newest[by+"\x00"+c.podRef()+"\x00"+k.Reason] = Word{c.podRef(), by, k.Reason, k.Message, k.LastTransitionTime.Time, true} // newer than any event
			}
		}
	}
	out := make([]Word, 0, len(newest))
	for _, w := range newest {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Word) int {
		return cmp.Or(strings.Compare(a.component, b.component), strings.Compare(a.about, b.about), strings.Compare(a.reason, b.reason), strings.Compare(a.message, b.message))
	})
	return out
}

// spoken are the events about the pod, or a predecessor of its name, and about its group,
// with what each is about.
func (c *Case) spoken(yield func(*corev1.Event, string) bool) {
	for _, e := range c.Cluster.EventsOf("Pod", c.Pod.Namespace, c.Pod.Name) {
		if uid := e.InvolvedObject.UID; (uid == "" || uid == c.Pod.UID) && !yield(e, c.podRef()) {
			return
		}
	}
	if _, name := view.Membership(c.Pod); name != "" {
		for _, e := range c.Cluster.EventsOf("PodGroup", c.Pod.Namespace, name) {
			if !yield(e, "PodGroup/"+c.Pod.Namespace+"/"+name) {
				return
			}
		}
	}
}

// OfMemory says whether it is about how much memory a GPU has (KAI: a node without the label
// nvidia.com/gpu.memory counts 100 MiB for each, or as one without GPUs).
func (w Word) OfMemory() bool {
	return strings.Contains(w.message, "GPU memory") || strings.Contains(w.message, "gpu memory count on the node was not synced")
}

// OfMIGStrategy says whether it is that a node whose label nvidia.com/mig.strategy is mixed takes no pod without a MIG
// profile (KAI's NodeInfo.PredicateByNodeResourcesType). KAI takes a node for one with MIG by its label
// node-role.kubernetes.io/mig-enabled, and without that by its nvidia.com/mig-* keys: up to 0.12 those at 0 did, too.
func (w Word) OfMIGStrategy() bool {
	return strings.Contains(w.message, "non MIG jobs cant run on a node with MigStrategy='mixed'")
}

// Message is what was said, in whole.
func (w Word) Message() string { return w.message }

// OfGang says whether the words are about the gang as a whole: Volcano's "3/4 tasks in
// gang unschedulable: pod group is not ready, …" and KAI's "Job is not ready for
// scheduling. Waiting for 2 pods, …".
func (w Word) OfGang() bool {
	return strings.Contains(w.message, "gang unschedulable") || strings.Contains(w.message, "pod group is not ready") || w.reason == "NotReady"
}

// Finding is that the scheduler decides, and what it says.
func (w Word) Finding(c *Case) *view.Finding {
	certainty := diagnosis.Likely
	if w.lasting {
		certainty = diagnosis.Proven
	}
	if w.OfTimeout() {
		return view.Found(certainty, view.Quotable(w.component, 63)+" has given its application up ("+reservationTimeout+"): not all of its gang had a node in time, and what is made since under the same id gets none", w.Evidence())
	}
	offered, evidence := w.offered(c)
	return view.Found(certainty, view.Quotable(w.component, 63)+" decides, and says "+view.Quotable(w.reason, 63)+": "+w.quote()+offered, append(evidence, w.told(w.quote()))...)
}

// quote is the message, or its two ends: kube-scheduler's begins with what counts, and others end with it.
func (w Word) quote() string {
	if _, plugins := whatif.ParseMessage(w.message); plugins {
		return view.Quotable(w.message, maxQuote)
	}
	return view.Told(view.Quotable(w.message, 4000), maxQuote)
}

// noneHas are KAI's words for what no node of a node pool is known to have.
var noneHas = regexp.MustCompile(`(?i)no\s+node\s+in\s+the\s+\S+\s+node-pool\s+has\s+(\S+)\s+resources`)

// offered is who offers, by the API server, what the scheduler says that no node has.
func (w Word) offered(c *Case) (string, []diagnosis.Evidence) {
	m := noneHas.FindStringSubmatch(w.message)
	if m == nil {
		return "", nil
	}
	for _, n := range c.Cluster.SortedNodes() {
		if q := n.Status.Allocatable[corev1.ResourceName(m[1])]; !q.IsZero() {
			return fmt.Sprintf("; %s offers %s of it", n.Name, q.String()), []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fmt.Sprintf("offers %s %s", q.String(), m[1]), diagnosis.That(diagnosis.Allocatable, m[1], diagnosis.Is, q.String()))}
		}
	}
	return "", nil
}

// Evidence quotes it.
func (w Word) Evidence() diagnosis.Evidence { return w.told(view.Quotable(w.message, maxQuote)) }

func (w Word) told(quoted string) diagnosis.Evidence {
	return diagnosis.Fact(w.about, fmt.Sprintf("%s says %s: %s", view.Quotable(w.component, 63), view.Quotable(w.reason, 63), quoted), diagnosis.Says(w.message))
}

// Foreign says whether a scheduler does not run kube-scheduler's code alone: it is known for
// that, or speaks otherwise of the pod.
func (c *Case) Foreign(scheduler string) bool {
	return slices.Contains(ownCode, scheduler) || slices.ContainsFunc(c.Words(), func(w Word) bool {
		_, fits := whatif.ParseMessage(w.message)
		return w.component == scheduler && !fits
	})
}
