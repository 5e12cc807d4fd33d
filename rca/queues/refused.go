package queues

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Refused is what the scheduler that decides about the pod says of it: what its group's
// object has before the pod's condition, for it says which rule, and that before Events.
func (c *Case) Refused() (Word, bool) {
	by := c.SchedulerName()
	var mine []Word
	for _, w := range slices.Concat(gaveUp(c), c.groupWords(), ofStandIns(c), c.Words()) {
		if w.component == by && w.reason != "" && w.message != "" {
			mine = append(mine, w)
		}
	}
	if len(mine) == 0 {
		return Word{}, false
	}
	return slices.MinFunc(mine, func(a, b Word) int {
		return cmp.Or(view.Rank(a.OfTimeout())-view.Rank(b.OfTimeout()), view.Rank(a.OfQueue())-view.Rank(b.OfQueue()), view.Rank(a.OfCard())-view.Rank(b.OfCard()), view.Rank(a.lasting)-view.Rank(b.lasting), b.at.Compare(a.at), strings.Compare(a.message, b.message))
	}), true
}

// groupWords are what the conditions of the pod's group say (KAI's schedulingConditions,
// pkg/apis/scheduling/v2alpha2; Volcano's conditions of type Unschedulable).
func (c *Case) groupWords() []Word {
	o := c.Group()
	if o == nil {
		return nil
	}
	about, by := "PodGroup/"+o.GetNamespace()+"/"+o.GetName(), c.SchedulerName()
	var out []Word
	for _, k := range nested(o, "status", "schedulingConditions") {
		reasons, _, _ := unstructured.NestedSlice(k, "reasons") //nolint:errcheck // what is no list says nothing
		for _, item := range append(reasons, any(k)) {
			if r, ok := item.(map[string]any); ok {
				out = append(out, Word{about: about, component: by, reason: wordOf(r, "reason"), message: wordOf(r, "message"), lasting: true})
			}
		}
	}
	if k := scaling.ConditionOf(o, "Unschedulable"); k.Met() {
		out = append(out, Word{about: about, component: by, reason: k.Reason, message: k.Message, at: k.Since, lasting: true})
	}
	return out
}

// Group is the object of the pod's group, also where it is no gang; nil for none that was
// read.
func (c *Case) Group() *unstructured.Unstructured {
	k, name := view.Membership(c.Pod)
	if name == "" || k.Groups == nil {
		return nil
	}
	for _, o := range k.Groups(c.Cluster.State) {
		if o.GetNamespace() == c.Pod.Namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

func nested(o *unstructured.Unstructured, path ...string) []map[string]any {
	list, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil {
		return nil
	}
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func wordOf(m map[string]any, key string) string {
	s, ok := m[key].(string)
	if !ok {
		return ""
	}
	return s
}

// queueWords are what schedulers with queues say when a queue, and no node, is in the way:
// KAI's reasons, Volcano's enqueue action, YuniKorn's quota, HAMi's own.
var queueWords = []string{"NonPreemptibleOverQuota", "OverLimit", "QueueDoesNotExist", "SchedulingSkipped", "over quota", "allowable limit", "queue resource quota insufficient", "resource quota insufficient",
	"resource in cluster is overused", "queue quota has been exceed", "does not fit in queue", "ResourceQuotaNotFit", "Insufficient quotas, quotaName: "}

// OfCluster says whether they are that all nodes together have too little for the group, which then gets no pods (Volcano's
// plugin overcommit): no autoscaler sees any.
func (w Word) OfCluster() bool { return strings.Contains(w.message, "resource in cluster is overused") }

// OfReports says whether they are that a node has not reported its devices to the scheduler (Koordinator's deviceshare).
func (w Word) OfReports() bool { return strings.Contains(w.message, "node(s) missing Device") }

// OfQueue says whether the words are about a queue or a quota of the scheduler's own.
func (w Word) OfQueue() bool {
	return slices.ContainsFunc(queueWords, func(part string) bool { return w.reason == part || strings.Contains(w.message, part) })
}

// OfCard says whether the words name what of a shared card is short (HAMi's
// pkg/device/common, Volcano's pkg/scheduler/api/devices/nvidia/vgpu).
func (w Word) OfCard() bool {
	return strings.Contains(w.message, " Card") || strings.Contains(w.message, "no enough gpu cards") || strings.Contains(w.message, "NodeInsufficientDevice") || strings.Contains(w.message, "AllocatedCardsInsufficientRequest") || strings.Contains(w.message, "NumaNotFit")
}

// OfPlaces says whether the words are that as many pods have a share of each card as may (HAMi's
// deviceSplitCount), and no more than that: how small a share is makes no difference then.
func (w Word) OfPlaces() bool {
	said := cardWord.FindAllString(w.message, -1)
	return len(said) > 0 && !slices.ContainsFunc(said, func(word string) bool { return word != "CardTimeSlicingExhausted" })
}

// cardWord is how HAMi calls what is short of a card.
var cardWord = regexp.MustCompile(`\b(Card|NodeInsufficientDevice|AllocatedCards|ExclusiveDevice|NumaNotFit)[A-Za-z]*`)

// OfUnregistered says whether the words are that the scheduler knows of no card on a node:
// HAMi's scheduler calls a node unregistered that its device plugin has not written its cards
// on (pkg/scheduler, annotation hami.io/node-nvidia-register).
func (w Word) OfUnregistered() bool { return strings.Contains(w.message, "node unregistered") }

// OfRoom says whether the words are that nodes have too little left: then who leaves, or
// ends, could help by that scheduler's rules, too.
func (w Word) OfRoom() bool {
	return !w.OfQueue() && !w.OfCard() && slices.ContainsFunc([]string{"enough resources", "Insufficient ", "NotEnoughResources", "resources become available", "Not enough resources"}, func(part string) bool {
		return strings.Contains(w.message, part) || w.reason == part
	})
}

// HasRoom says whether the default scheduler's filters take the pod as nodes are, and none has to begin with it: that its own
// scheduler refuses it is then no lack of room which anybody who ends, or leaves, would mend for certain.
func HasRoom(c *Case) bool {
	if !c.Fits {
		return false
	}
	o := c.Group()
	if o == nil {
		return true
	}
	members, found, err := unstructured.NestedInt64(o.Object, "spec", "minMember")
	return err == nil && (!found || members <= 1)
}
