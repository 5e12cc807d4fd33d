package queues

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Gate is Kueue's (kueue.x-k8s.io, pod integration).
const Gate = "kueue.x-k8s.io/admission"

// NotAdmitted is what Kueue holds the pod by, its gate or its suspended Job, and what its
// Workload lacks: the Workload's own conditions say that, they are never on the pod. Volcano's queue never admits
// what is more than it may hold. nil where neither holds anything.
func (c *Case) NotAdmitted() *view.Finding {
	if u := c.WhyUngrouped(); u != nil {
		return &u.Finding
	}
	if Behind(c) != nil {
		return behindSays(c)
	}
	evidence := c.heldBy()
	if x := c.Beyond(); evidence == nil && x != nil {
		x.Evidence = append(x.Evidence, c.stands()...)
		return &x.Finding
	}
	if evidence == nil {
		return nil
	}
	says := "its queue (Kueue) has not admitted it"
	w := c.Queued()
	if lacks, fact := c.GroupLacks(); w == nil && lacks != "" {
		return view.Found(diagnosis.Proven, says+": "+lacks, append(evidence, fact)...)
	}
	if fact, lacks := c.NoWorkload(); lacks {
		u := c.WhyUnqueued()
		if left := LeftBehind(c); left != nil && !u.Down {
			return view.Found(diagnosis.Likely, "Kueue has made no Workload for it, and keeps "+refOf("Workload", left)+" of one of its name that is gone", append(evidence, fact)...)
		}
		behind, facts := u.says()
		return view.Found(diagnosis.Likely, "Kueue has made no Workload for it, so no queue has looked at it"+behind, append(append(evidence, fact), facts...)...)
	}
	if w == nil && c.Cluster.State.Unread[workloadKind] != "" {
		certainty := diagnosis.Proven
		if c.Held != nil {
			certainty = diagnosis.Likely // somebody else may have suspended it
		}
		return view.Found(certainty, says+"; Workloads were not read, so neither what it lacks is known, nor whether Kueue has made one for it", evidence...)
	}
	if w != nil {
		if since, young := c.LetIn(w); !since.IsZero() {
			return view.Found(diagnosis.Proven, c.letInSays(since, young), append(evidence, conditionFact(w, "Admitted"))...)
		}
		if k := c.Dispatched(); k != nil {
			return view.Found(diagnosis.Proven, "Kueue gives it to another cluster (MultiKueue), and its pods do not begin in this one: "+k.Says(), append(append(evidence, conditionFact(w, "QuotaReserved")), c.checked(w, []Check{*k})...)...)
		}
		why, fact := Why(w)
		evidence = append(evidence, diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), fact, whyClaims(w, why)...))
		checks, refused := Unchecked(w), Refused(w)
		evidence = append(append(evidence, c.checked(w, append(slices.Clone(checks), refused...))...), c.ofQuota(w)...)
		switch words := c.SecondPass(w); {
		case len(refused) > 0:
			given, fact := c.refusedSays(w, refused)
			says, evidence = says+": "+given, append(evidence, fact...)
		case len(checks) > 0:
			says += ": it has its quota, and " + checks[0].Says()
			if request, why := c.Unprovided(w); request != "" {
				says += "; ProvisioningRequest " + request + " has ended: " + why
			}
		case words != "":
			lacks, fact := secondPassSays(w, words)
			says, evidence = says+": "+lacks, append(evidence, fact)
		case c.Ahead(w) != nil:
			blocked, facts := c.Ahead(w).says()
			says, evidence = says+": "+blocked, append(evidence, facts...)
		case Keeps(c, w) != nil:
			keeps, facts := Keeps(c, w).keepsSays()
			says, evidence = says+": "+keeps, append(evidence, facts...)
		case c.Intolerant(w) != nil:
			kept, facts := c.Intolerant(w).says()
			says, evidence = says+": "+kept, append(evidence, facts...)
		case uncovered(why) && NotCovered(c, w) != nil:
			lacks, fact := NotCovered(c, w).says()
			says, evidence = says+": "+lacks, append(evidence, fact)
		case Unlooked(w, c.Cluster.State.Now):
			says += ", and has said nothing of it since it was made"
		case why != "":
			says += ": " + view.Cut(assigning.ReplaceAllString(why, ""), 160)
			if c.QuotaOf(w).Outdated() {
				says += "; by the figures of ClusterQueue " + c.ClusterQueue(w).GetName() + " that is unused now, and Kueue has not tried again"
			}
		}
		if kept := c.Kept(w); len(kept) > 0 {
			says += "; " + kept[0].says()
		}
	}
	return view.Found(diagnosis.Proven, says, evidence...)
}

// heldBy is the evidence that Kueue holds the pod, or the object that makes it; nil when
// it holds neither.
func (c *Case) heldBy() []diagnosis.Evidence {
	ref, fact, claims := c.podRef(), "gate "+Gate, c.Cluster.OfPod(c.Pod, view.GatedBy(Gate)...)
	switch {
	case c.Grouped(), c.Ungrouped():
		return nil // its scheduler does, and not Kueue
	case c.Held != nil:
		r := c.Held
		if w := c.Queued(); w != nil && !incident.OwnKind(r.Owner.Kind) { // what it is of is not read: it says that itself
			fact, claims := fmt.Sprintf("stands for %s/%s, of which no pod exists", strings.ToLower(r.Owner.Kind), r.Owner.Name), []diagnosis.Claim{diagnosis.That("count(pods)", "", diagnosis.Is, "0").Of(view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name))}
			if r.Queue != "" {
				fact, claims = fact+"; in queue "+r.Queue, append(claims, diagnosis.That("spec.queueName", "", diagnosis.Is, r.Queue))
			}
			return []diagnosis.Evidence{diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), fact, claims...)}
		}
		its := suspended(c)
		ref, fact, claims = its.Ref, its.Fact, its.Claims
	case !slices.ContainsFunc(c.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == Gate }):
		return nil
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(ref, fact, claims...)}
	if q := c.queueName(); q != "" {
		if c.Held != nil && c.Held.Named != nil {
			of := c.Held.Named
			ref = view.ObjectRef(of.Kind, of.Namespace, of.Name)
		}
		evidence = append(evidence, diagnosis.Fact(ref, "queue "+q, diagnosis.That("metadata", "", diagnosis.Contains, q)))
	}
	return evidence
}

// suspended is that what makes the pods is, and how many it wants.
func suspended(c *Case) diagnosis.Evidence {
	r := c.Held
	claims := []diagnosis.Claim{diagnosis.That("spec.suspend", "", diagnosis.Is, "true")}
	if o, known := c.Cluster.State.Owner(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name); known {
		if j, is := o.(*batchv1.Job); is && int(ptr.Deref(j.Spec.Parallelism, 1)) == r.Wants && j.Spec.Parallelism != nil {
			claims = append(claims, diagnosis.That("spec.parallelism", "", diagnosis.Is, strconv.Itoa(r.Wants)))
		}
	}
	if r.Set != nil && r.Set.Wants != "" {
		claims = append(claims, diagnosis.That(r.Set.Wants, "", diagnosis.Is, strconv.Itoa(r.Wants)).Of(view.ObjectRef(r.Set.Of.Kind, r.Set.Of.Namespace, r.Set.Of.Name)))
	}
	return diagnosis.Fact(view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name), "suspended, and wants "+view.CountOf(r.Wants, "pod"), claims...)
}

// whyClaims are the words of a Workload's conditions; none where it has none.
func whyClaims(w *unstructured.Unstructured, why string) []diagnosis.Claim {
	switch k := deactivated(w); {
	case Inactive(w):
		return append([]diagnosis.Claim{diagnosis.That("spec.active", "", diagnosis.Is, "false")}, view.SaysOf(k)...)
	case why == "" && scaling.ConditionOf(w, "QuotaReserved").Status == "":
		return []diagnosis.Claim{diagnosis.That("status.conditions[type=QuotaReserved]", "", diagnosis.Absent, "")}
	case why == "" && scaling.ConditionOf(w, "Admitted").Status == "":
		return []diagnosis.Claim{diagnosis.That("status.conditions[type=Admitted]", "", diagnosis.Absent, "")}
	case why == "":
		return nil
	}
	return []diagnosis.Claim{diagnosis.Says(why)}
}

// begins is how long Kueue may take to let begin what it has admitted.
const begins = time.Minute

// LetIn is since when Kueue has admitted what it holds still: it is not quota that is waited for.
// young: it may be about to let it begin. Zero where it has not admitted it, and where another
// cluster runs it.
func (c *Case) LetIn(w *unstructured.Unstructured) (since time.Time, young bool) {
	k := scaling.ConditionOf(w, "Admitted")
	if !k.Met() || scaling.ConditionOf(w, "Evicted").Met() || Inactive(w) || c.Dispatched() != nil {
		return time.Time{}, false
	}
	return k.Since, c.Cluster.State.Now.Sub(k.Since) < begins
}

// letInSays tells of what Kueue has admitted and holds still.
func (c *Case) letInSays(since time.Time, young bool) string {
	held := "gate " + Gate + " is still there"
	if c.Held != nil {
		held = "it is still suspended"
	}
	if young {
		return "Kueue has admitted it a moment ago; " + held
	}
	return fmt.Sprintf("Kueue admitted it at %s and has not let it begin: %s", since.UTC().Format("15:04 MST"), held)
}

// conditionFact is a condition of a Workload, in its own words.
func conditionFact(w *unstructured.Unstructured, kind string) diagnosis.Evidence {
	k := scaling.ConditionOf(w, kind)
	return diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), kind+"="+k.Status+" "+view.Cut(k.Words(), 200), append(view.SaysOf(k), view.ConditionIs(kind, k.Status))...)
}

// queueName is the queue that the pod, or what makes it, is labelled with.
func (c *Case) queueName() string {
	if c.Held != nil {
		return c.Held.Queue
	}
	return c.Pod.Labels[incident.QueueLabel]
}

// assigning begins what Kueue says of one pod set (flavorassigner.go).
var assigning = regexp.MustCompile(`^couldn't assign flavors to pod set \S+: `)

// Queued is the Workload that Kueue made for the pod, for what made it or for its group; nil when
// none was read. A pod that names its Workload has no other.
func (c *Case) Queued() *unstructured.Unstructured {
	makers := append([]metav1.OwnerReference{{Kind: "Pod", Name: c.Pod.Name, UID: c.Pod.UID}}, c.Pod.OwnerReferences...)
	w := c.Incident.Workload
	if b := Behind(c); b != nil {
		makers = []metav1.OwnerReference{*b}
	} else if owner, ok := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name); ok {
		makers = append(makers, metav1.OwnerReference{Kind: w.Kind, Name: w.Name, UID: owner.GetUID()})
	}
	named := c.namedWorkloads()
	for _, u := range c.Cluster.State.QueuedWorkloads {
		switch {
		case u.GetNamespace() != c.Pod.Namespace:
		case slices.Contains(named, u.GetName()):
			return u
		case len(named) > 0:
		case slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
			return slices.ContainsFunc(makers, func(m metav1.OwnerReference) bool { return view.Refers(&o, m.Kind, m.Name, m.UID) })
		}):
			return u
		}
	}
	return nil
}

// prebuilt names, on a pod, the Workload that Kueue makes for its group of a serving workload
// (pkg/controller/constants in kubernetes-sigs/kueue).
const prebuilt = "kueue.x-k8s.io/prebuilt-workload-name"

// namedWorkloads are the names under which the pod itself knows its Workload; none for most.
func (c *Case) namedWorkloads() []string {
	var out []string
	for _, name := range []string{c.Pod.Annotations["kueue.x-k8s.io/workload"], c.Pod.Labels[prebuilt], c.Pod.Labels[incident.GroupLabel]} {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// pending says that a Workload is in its queue and waits; one in its back-off is not.
func pending(w *unstructured.Unstructured) bool {
	return !Inactive(w) && w.GetDeletionTimestamp() == nil && scaling.ConditionOf(w, "Requeued").Status != "False" && !scaling.ConditionOf(w, "QuotaReserved").Met() && !scaling.ConditionOf(w, "Finished").Met()
}

// Inactive says whether somebody set spec.active of a Kueue Workload to false.
func Inactive(w *unstructured.Unstructured) bool {
	active, set, err := unstructured.NestedBool(w.Object, "spec", "active")
	return set && err == nil && !active
}

// deactivated is the eviction by which Kueue itself set a Workload inactive, and why; empty where
// it does not say why (a person has, or nobody).
func deactivated(w *unstructured.Unstructured) scaling.Condition {
	if k := scaling.ConditionOf(w, "Evicted"); Inactive(w) && k.Met() && strings.Contains(k.Message, "deactivated due to ") {
		return k
	}
	return scaling.Condition{}
}

// GaveUp says whether Kueue set the Workload inactive because its pods were not ready in time,
// again and again (waitForPodsReady, requeuingStrategy.backoffLimitCount): it never tries by
// itself again.
func GaveUp(w *unstructured.Unstructured) bool {
	return strings.Contains(deactivated(w).Message, "re-queuing retries")
}

// unlooked is how long Kueue may take to look at a Workload: it does so within seconds.
const unlooked = 10 * time.Minute

// Unlooked says whether Kueue has said nothing of a Workload since it was made, long ago.
func Unlooked(w *unstructured.Unstructured, now time.Time) bool {
	list, _, err := unstructured.NestedSlice(w.Object, "status", "conditions")
	made := w.GetCreationTimestamp().Time
	return err == nil && len(list) == 0 && !made.IsZero() && now.Sub(made) > unlooked
}

// Why is why a Workload is not admitted, in Kueue's words, and the condition that
// says so: quota comes before the checks behind it.
func Why(w *unstructured.Unstructured) (why, fact string) {
	if Inactive(w) {
		k := deactivated(w)
		if k.Message == "" {
			return "its Workload is not active", "spec.active is false"
		}
		return "its Workload is not active: " + view.Quotable(k.Message, 200), "spec.active is false; Evicted=True " + view.Cut(k.Words(), 300)
	}
	list, _, err := unstructured.NestedSlice(w.Object, "status", "conditions")
	if err != nil {
		return "", "its conditions cannot be read"
	}
	for _, kind := range []string{"QuotaReserved", "Admitted"} {
		for _, item := range list {
			k, ok := item.(map[string]any)
			if !ok || k["type"] != kind || k["status"] != "False" {
				continue
			}
			message, _ := k["message"].(string)
			message = strings.Join(strings.Fields(message), " ")
			return message, fmt.Sprintf("%s=False, %v: %s", kind, k["reason"], view.Cut(message, 300))
		}
	}
	return "", "has no condition that says why"
}
