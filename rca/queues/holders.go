package queues

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Holder is a Workload that a ClusterQueue's quota is reserved for.
type Holder struct {
	Workload *unstructured.Unstructured
	Resource corev1.ResourceName
	Flavor   string
	Amount   resource.Quantity
	// Evicted is Kueue's reason why it was evicted; empty while it may run.
	Evicted string
	Since   time.Time // it was evicted
	// Orphan is the kind of what it was made for, and which is none of those that were read; empty where that is there.
	Orphan string
}

// letsGo is how long an evicted Workload may keep its quota: Kueue gives it back once the
// pods have ended.
const letsGo = 10 * time.Minute

// Stuck says that a Workload was evicted, and its quota is not given back.
func (h Holder) Stuck(now time.Time) bool { return h.Evicted != "" && now.Sub(h.Since) > letsGo }

// Idle says that nobody runs, or will, by the quota that it holds.
func (h Holder) Idle(now time.Time) bool { return h.Stuck(now) || h.Orphan != "" }

// says is why nobody does.
func (h Holder) says() string {
	if h.Orphan != "" {
		return fmt.Sprintf("%s holds %s, and the %s that it was made for is none of those that were read", h.Ref(), h.Amount.String(), h.Orphan)
	}
	return fmt.Sprintf("%s was evicted and still holds %s", h.Ref(), h.Amount.String())
}

// Ref is the Workload for people.
func (h Holder) Ref() string {
	return view.ObjectRef("Workload", h.Workload.GetNamespace(), h.Workload.GetName())
}

// ClusterQueue is the queue whose quota a Workload needs; nil when it was not read.
func (c *Case) ClusterQueue(w *unstructured.Unstructured) *unstructured.Unstructured {
	local := objectOf(c.Cluster.State.Queues.Local, w.GetNamespace(), nestedText(w, "spec", "queueName"))
	if local == nil {
		return nil
	}
	return objectOf(c.Cluster.State.Queues.Cluster, "", nestedText(local, "spec", "clusterQueue"))
}

// Holders are who a ClusterQueue's quota of what the pod asks for is reserved for: those
// first who were evicted and keep it, then who holds most.
func (c *Case) Holders(queue *unstructured.Unstructured) []Holder {
	var out []Holder
	for _, w := range c.Cluster.State.QueuedWorkloads {
		if queue == nil || nestedText(w, "status", "admission", "clusterQueue") != queue.GetName() || scaling.ConditionOf(w, "Finished").Met() {
			continue
		}
		for _, a := range view.AsksOf(c.Pod) {
			if h := held(w, a.Resource); h.Amount.Sign() > 0 {
				h.Orphan = orphan(c, w)
				out = append(out, h)
			}
		}
	}
	now := c.Cluster.State.Now
	rank := func(h Holder) int {
		return view.Rank(h.Idle(now))
	}
	slices.SortStableFunc(out, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.Amount.Cmp(a.Amount), cmp.Compare(a.Ref(), b.Ref()))
	})
	return out
}

// Kept are who hold the quota that keeps a Workload waiting though they were evicted, or what they were made for is gone.
func (c *Case) Kept(w *unstructured.Unstructured) []Holder {
	if why, _ := Why(w); !strings.Contains(why, "insufficient unused quota") {
		return nil
	}
	return slices.DeleteFunc(c.Holders(c.ClusterQueue(w)), func(h Holder) bool { return !h.Idle(c.Cluster.State.Now) })
}

// jobUID is the label by which a Workload says what it was made for (kueue pkg/controller/constants).
const jobUID = "kueue.x-k8s.io/job-uid"

// orphan is the kind of what a Workload was made for, a pod or a Job, where none of those that were read has that and
// the Workload has had its quota for a while: nobody ends, so nobody gives it back (kueue issue 10407). Empty where it is there, or not known.
func orphan(c *Case, w *unstructured.Unstructured) string {
	st := c.Cluster.State
	if k := scaling.ConditionOf(w, "QuotaReserved"); !k.Met() || st.Now.Sub(k.Since) < letsGo {
		return ""
	}
	uid := w.GetLabels()[jobUID]
	made, _, _ := strings.Cut(w.GetName(), "-") // by its kind, then its name
	kind := map[string]string{"pod": "Pod", "job": "Job"}[made]
	if uid == "" || kind == "" || st.Unread[kind] != "" || (*view.Kept(c.Cluster, makersOf))[types.UID(uid)] {
		return ""
	}
	return kind
}

// makers are the uids of all pods and Jobs.
type makers map[types.UID]bool

func makersOf(w *view.Cluster) *makers {
	out := makers{}
	for _, p := range w.State.Pods {
		out[p.UID] = true
	}
	for _, j := range w.State.Jobs {
		out[j.UID] = true
	}
	return &out
}

// held is what a Workload has of one resource, by what Kueue has assigned to it.
func held(w *unstructured.Unstructured, name corev1.ResourceName) Holder {
	h := Holder{Workload: w, Resource: name}
	for _, set := range nested(w, "status", "admission", "podSetAssignments") {
		used, _ := set["resourceUsage"].(map[string]any)
		q, err := resource.ParseQuantity(fmt.Sprint(used[string(name)]))
		if err != nil {
			continue
		}
		h.Amount.Add(q)
		if flavors, ok := set["flavors"].(map[string]any); ok {
			h.Flavor = wordOf(flavors, string(name))
		}
	}
	if k := scaling.ConditionOf(w, "Evicted"); k.Met() {
		h.Evicted, h.Since = k.Reason, k.Since
	}
	return h
}

// mostHolders is how many holders of a quota are named.
const mostHolders = 3

// reserved tells who holds the quota.
func (c *Case) reserved(queue *unstructured.Unstructured) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, h := range c.Holders(queue) {
		if len(out) == mostHolders {
			break
		}
		fact := fmt.Sprintf("holds %s %s of flavor %s", h.Amount.String(), h.Resource, h.Flavor)
		amount := diagnosis.That("status.admission", "", diagnosis.Contains, h.Amount.String())
		if sets := nested(h.Workload, "status", "admission", "podSetAssignments"); len(sets) == 1 {
			amount = diagnosis.That("status.admission.podSetAssignments[0].resourceUsage", string(h.Resource), diagnosis.Is, h.Amount.String())
		}
		claims := []diagnosis.Claim{diagnosis.That("status.admission.clusterQueue", "", diagnosis.Is, queue.GetName()), amount}
		if h.Evicted != "" {
			fact += fmt.Sprintf(", though Kueue has evicted it at %s (%s)", h.Since.UTC().Format("2006-01-02 15:04 UTC"), h.Evicted)
			claims = append(claims, view.ConditionIs("Evicted", "True"), diagnosis.That("status.conditions[type=Evicted].reason", "", diagnosis.Is, h.Evicted),
				diagnosis.That("status.conditions[type=Evicted].lastTransitionTime", "", diagnosis.Is, h.Since.UTC().Format(time.RFC3339)))
		}
		if kind, uid := h.Orphan, h.Workload.GetLabels()[jobUID]; kind != "" {
			fact += ", and no " + kind + " that was read has the uid that it was made for"
			claims = append(claims, diagnosis.That(diagnosis.Labels, jobUID, diagnosis.Is, uid), diagnosis.That("metadata.uid", "", diagnosis.IsNot, uid).Of(kind+"/*"))
		}
		out = append(out, diagnosis.Fact(h.Ref(), fact, claims...))
	}
	return out
}
