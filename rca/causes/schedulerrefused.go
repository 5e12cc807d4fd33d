package causes

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// schedulerRefused: another scheduler decides about the pod, and its own words are what is
// known of that. What the default scheduler's filters say of nodes is information.
var schedulerRefused = PodRule{ID: diagnosis.SchedulerRefused, Aside: true, leads: true, Tell: func(c *Case) *finding {
	if c.Elsewhere(c.Pod) == "" || c.IsOwn(diagnosis.QueueMisconfigured) {
		return nil
	}
	w, ok := c.Refused()
	if !ok || c.IsOwn(diagnosis.GangIncomplete) && !w.ofQueue() || c.unregistered() {
		return nil
	}
	certainty := diagnosis.Likely
	if w.lasting {
		certainty = diagnosis.Proven
	}
	return &finding{certainty, quotable(w.component, 63) + " decides, and says " + quotable(w.reason, 63) + ": " + quotable(w.message, maxQuote), []diagnosis.Evidence{w.evidence()}}
}}

// Refused is what the scheduler that decides about the pod says of it: what its group's
// object has before the pod's condition, for it says which rule, and that before Events.
func (c *Case) Refused() (word, bool) {
	by := c.SchedulerName()
	var mine []word
	for _, w := range slices.Concat(c.groupWords(), c.words()) {
		if w.component == by && w.reason != "" && w.message != "" {
			mine = append(mine, w)
		}
	}
	if len(mine) == 0 {
		return word{}, false
	}
	return slices.MinFunc(mine, func(a, b word) int {
		return cmp.Or(view.Rank(a.ofQueue())-view.Rank(b.ofQueue()), view.Rank(a.ofCard())-view.Rank(b.ofCard()), view.Rank(a.lasting)-view.Rank(b.lasting), b.at.Compare(a.at), strings.Compare(a.message, b.message))
	}), true
}

// groupWords are what the conditions of the pod's group say (KAI's schedulingConditions,
// pkg/apis/scheduling/v2alpha2; Volcano's conditions of type Unschedulable).
func (c *Case) groupWords() []word {
	o := c.group()
	if o == nil {
		return nil
	}
	about, by := "PodGroup/"+o.GetNamespace()+"/"+o.GetName(), c.SchedulerName()
	var out []word
	for _, k := range nested(o, "status", "schedulingConditions") {
		reasons, _, _ := unstructured.NestedSlice(k, "reasons") //nolint:errcheck // what is no list says nothing
		for _, item := range append(reasons, any(k)) {
			if r, ok := item.(map[string]any); ok {
				out = append(out, word{about: about, component: by, reason: wordOf(r, "reason"), message: wordOf(r, "message"), lasting: true})
			}
		}
	}
	if k := scaling.ConditionOf(o, "Unschedulable"); k.Met() {
		out = append(out, word{about: about, component: by, reason: k.Reason, message: k.Message, at: k.Since, lasting: true})
	}
	return out
}

// group is the object of the pod's group, also where it is no gang; nil for none that was
// read.
func (c *Case) group() *unstructured.Unstructured {
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
	"resource in cluster is overused", "queue quota has been exceed", "does not fit in queue", "ResourceQuotaNotFit"}

// ofQueue says whether the words are about a queue or a quota of the scheduler's own.
func (w word) ofQueue() bool {
	return slices.ContainsFunc(queueWords, func(part string) bool { return w.reason == part || strings.Contains(w.message, part) })
}

// ofCard says whether the words name what of a shared card is short (HAMi's
// pkg/device/common).
func (w word) ofCard() bool {
	return strings.Contains(w.message, " Card") || strings.Contains(w.message, "NodeInsufficientDevice") || strings.Contains(w.message, "AllocatedCardsInsufficientRequest") || strings.Contains(w.message, "NumaNotFit")
}

// unregistered says whether what the deciding scheduler misses is what the rules find of
// nodes: HAMi's scheduler calls a node unregistered that its device plugin has not written its
// cards on (pkg/scheduler, annotation hami.io/node-nvidia-register), and the first broken link
// of every node with GPUs is why.
func (c *Case) unregistered() bool {
	w, ok := c.Refused()
	if !ok || !strings.Contains(w.message, "node unregistered") {
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

// OfRoom says whether the words are that nodes have too little left: then who leaves, or
// ends, could help by that scheduler's rules, too.
func (w word) OfRoom() bool {
	return !w.ofQueue() && !w.ofCard() && slices.ContainsFunc([]string{"enough resources", "Insufficient ", "NotEnoughResources", "resources become available", "Not enough resources"}, func(part string) bool {
		return strings.Contains(w.message, part) || w.reason == part
	})
}

// OfQueue and OfCard are for those who say what to do about it.
func (w word) OfQueue() bool { return w.ofQueue() }

// OfCard says whether a share of a card is what is short.
func (w word) OfCard() bool { return w.ofCard() }

// BeyondNodes says whether what keeps the pod is such that no change of a node helps.
func (c *Case) BeyondNodes() bool {
	if c.IsOwn(diagnosis.QueueMisconfigured) {
		return true
	}
	w, ok := c.Refused()
	return ok && c.IsOwn(diagnosis.SchedulerRefused) && !w.OfRoom()
}
