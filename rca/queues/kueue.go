package queues

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Gate is Kueue's (kueue.x-k8s.io, pod integration).
const Gate = "kueue.x-k8s.io/admission"

// NotAdmitted is what Kueue holds the pod by, its gate or its suspended Job, and what its
// Workload lacks: the Workload's own conditions say that, they are never on the pod. Volcano's queue never admits
// what is more than it may hold. nil where neither holds anything.
func (c *Case) NotAdmitted() *view.Finding {
	evidence := c.heldBy()
	if x := c.Beyond(); evidence == nil && x != nil {
		return &x.Finding
	}
	if evidence == nil {
		return nil
	}
	says := "its queue (Kueue) has not admitted it"
	if w := c.Queued(); w != nil {
		why, fact := Why(w)
		evidence = append(evidence, diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), fact, whyClaims(why)...))
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
		case why != "":
			says += ": " + view.Cut(assigning.ReplaceAllString(why, ""), 160)
		}
		if kept := c.Kept(w); kept != nil {
			says += fmt.Sprintf("; %s was evicted and still holds %s", kept.Ref(), kept.Amount.String())
		}
	}
	return view.Found(diagnosis.Proven, says, evidence...)
}

// heldBy is the evidence that Kueue holds the pod, or the object that makes it; nil when
// it holds neither.
func (c *Case) heldBy() []diagnosis.Evidence {
	ref, fact, claims := c.podRef(), "gate "+Gate, c.Cluster.OfPod(c.Pod, view.GatedBy(Gate)...)
	switch {
	case c.Held != nil:
		r := c.Held
		ref, fact = view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name), "suspended, and wants "+view.CountOf(r.Wants, "pod")
		claims = []diagnosis.Claim{diagnosis.That("spec", "", diagnosis.Contains, "true")}
		if o, known := c.Cluster.State.Owner(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name); known {
			if j, is := o.(*batchv1.Job); is && int(ptr.Deref(j.Spec.Parallelism, 1)) == r.Wants && j.Spec.Parallelism != nil {
				claims = append(claims, diagnosis.That("spec.parallelism", "", diagnosis.Is, strconv.Itoa(r.Wants)))
			}
		}
	case !slices.ContainsFunc(c.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == Gate }):
		return nil
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(ref, fact, claims...)}
	if q := c.queueName(); q != "" {
		evidence = append(evidence, diagnosis.Fact(ref, "queue "+q, diagnosis.That("metadata", "", diagnosis.Contains, q)))
	}
	return evidence
}

// whyClaims are the words of a Workload's conditions; none where it has none.
func whyClaims(why string) []diagnosis.Claim {
	if why == "" {
		return nil
	}
	return []diagnosis.Claim{diagnosis.Says(why)}
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

// Queued is the Workload that Kueue made for the pod, for what made it or for its group;
// nil when none was read.
func (c *Case) Queued() *unstructured.Unstructured {
	makers := append([]metav1.OwnerReference{{Kind: "Pod", Name: c.Pod.Name, UID: c.Pod.UID}}, c.Pod.OwnerReferences...)
	w := c.Incident.Workload
	if owner, ok := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name); ok {
		makers = append(makers, metav1.OwnerReference{Kind: w.Kind, Name: w.Name, UID: owner.GetUID()})
	}
	for _, u := range c.Cluster.State.QueuedWorkloads {
		if u.GetNamespace() != c.Pod.Namespace {
			continue
		}
		if name := u.GetName(); name == c.Pod.Annotations["kueue.x-k8s.io/workload"] || name == c.Pod.Labels["kueue.x-k8s.io/pod-group-name"] {
			return u
		}
		for _, o := range u.GetOwnerReferences() {
			if slices.ContainsFunc(makers, func(m metav1.OwnerReference) bool { return view.Refers(&o, m.Kind, m.Name, m.UID) }) {
				return u
			}
		}
	}
	return nil
}

// Inactive says whether somebody set spec.active of a Kueue Workload to false.
func Inactive(w *unstructured.Unstructured) bool {
	active, set, err := unstructured.NestedBool(w.Object, "spec", "active")
	return set && err == nil && !active
}

// Why is why a Workload is not admitted, in Kueue's words, and the condition that
// says so: quota comes before the checks behind it.
func Why(w *unstructured.Unstructured) (why, fact string) {
	if Inactive(w) {
		return "its Workload is not active", "spec.active is false"
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
