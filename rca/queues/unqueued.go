package queues

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// workloadKind is under what Workloads are noted that were not read.
const workloadKind = "Workload.kueue.x-k8s.io"

// queuedWithin is how long Kueue may take to make a Workload for what it holds.
const queuedWithin = time.Minute

// NoWorkload says that Kueue holds the pod, or what makes it, and has made no Workload for it in
// longer than that takes: it does not run, or does not look after that kind. False where Workloads were not
// read, and where Kueue waits for the rest of a group.
func (c *Case) NoWorkload() (diagnosis.Evidence, bool) {
	st := c.Cluster.State
	if st.Unread[workloadKind] != "" || c.Queued() != nil || c.Incident.Since.IsZero() || st.Now.Sub(c.Incident.Since) < queuedWithin || c.heldBy() == nil {
		return diagnosis.Evidence{}, false
	}
	if lacks, _ := c.GroupLacks(); lacks != "" {
		return diagnosis.Evidence{}, false
	}
	ref := c.podRef()
	if c.Held != nil {
		ref = view.ObjectRef(c.Held.Owner.Kind, c.Held.Owner.Namespace, c.Held.Owner.Name)
	}
	if left := LeftBehind(c); left != nil {
		return leftFact(left, ownerUID(c)), true
	}
	named := c.namedWorkloads()
	if len(named) == 0 {
		return diagnosis.Fact(ref, "none of the Workloads that were read stands for it", diagnosis.That("metadata.ownerReferences[*].name", "", diagnosis.IsNot, c.owned()).Of("Workload.kueue.x-k8s.io/*")), true
	}
	var claims []diagnosis.Claim
	for _, name := range named {
		claims = append(claims, diagnosis.That("", "", diagnosis.Absent, "").Of("Workload.kueue.x-k8s.io/"+c.Pod.Namespace+"/"+name))
	}
	return diagnosis.Fact(ref, fmt.Sprintf("its Workload %s is not among those that were read", named[0]), claims...), true
}

// Unqueued is why Kueue may have made no Workload, as far as others tell.
type Unqueued struct {
	// Controller is the Deployment of Kueue's controller; nil where none is seen. Down: it has no pod
	// that is ready.
	Controller *appsv1.Deployment
	Down       bool
	// Namespace and Kind are those of what is suspended where Kueue has made a Workload for nobody of
	// them; empty where it has. Who has its gate is of neither: it looks before it puts that there.
	Namespace, Kind string
}

// Manager is where Kueue's controller runs; where it is installed by itself unless another is seen.
func Manager(w *view.Cluster) (namespace, name string) {
	works, down := managers(w, "kueue")
	if d := cmp.Or(works, down); d != nil {
		return d.Namespace, d.Name
	}
	return "kueue-system", "kueue-controller-manager"
}

// WhyUnqueued looks at Kueue itself, and at what it has made for others: it leaves out whole namespaces
// (managedJobsNamespaceSelector), and whole kinds (integrations.frameworks).
func (c *Case) WhyUnqueued() *Unqueued {
	u := &Unqueued{}
	works, down := managers(c.Cluster, "kueue")
	u.Controller, u.Down = cmp.Or(works, down), works == nil && down != nil
	if c.Held == nil {
		return u
	}
	u.Namespace, u.Kind = c.Held.Owner.Namespace, c.Held.Owner.Kind
	if c.Held.Named != nil {
		u.Kind = c.Held.Named.Kind
	}
	for _, w := range c.Cluster.State.QueuedWorkloads {
		if w.GetNamespace() == u.Namespace {
			u.Namespace = ""
		}
		if o := metav1.GetControllerOf(w); o != nil && incident.OwnerKind(o) == u.Kind {
			u.Kind = ""
		}
	}
	return u
}

// LeftBehind is the Workload of an object that had the name of what makes the pod, and is gone: it has another uid, so Kueue takes
// it for nobody's, and makes no other of that name (kueue issue 1726). nil where none is.
func LeftBehind(c *Case) *unstructured.Unstructured {
	uid := ownerUID(c)
	if c.Held == nil || uid == "" || len(c.namedWorkloads()) > 0 {
		return nil
	}
	of := c.Held.Owner
	for _, w := range c.Cluster.State.QueuedWorkloads {
		if o := metav1.GetControllerOfNoCopy(w); w.GetNamespace() == of.Namespace && o != nil && o.UID != "" && o.UID != uid && incident.OwnerKind(o) == of.Kind && o.Name == of.Name {
			return w
		}
	}
	return nil
}

// ownerUID is that of what makes the pods; empty where it is not known.
func ownerUID(c *Case) types.UID {
	if o := metav1.GetControllerOfNoCopy(c.Pod); o != nil && c.Held != nil && incident.OwnerKind(o) == c.Held.Owner.Kind && o.Name == c.Held.Owner.Name {
		return o.UID
	}
	return ""
}

func leftFact(w *unstructured.Unstructured, uid types.UID) diagnosis.Evidence {
	return diagnosis.Fact(refOf("Workload", w), "is of another object of that name, which has another uid and is gone", diagnosis.That("metadata.ownerReferences[*].uid", "", diagnosis.IsNot, string(uid)))
}

// says tells of it, and of what of that is proven.
func (u *Unqueued) says() (string, []diagnosis.Evidence) {
	if u.Controller == nil {
		return "", nil
	}
	d := u.Controller
	ref := view.ObjectRef("Deployment", d.Namespace, d.Name)
	if u.Down {
		fact, claims := noneReady(d)
		return ": " + d.Namespace + "/" + d.Name + ", which would, " + fact, []diagnosis.Evidence{diagnosis.Fact(ref, fact, claims...)}
	}
	return ", though its controller runs", []diagnosis.Evidence{diagnosis.Fact(ref, fmt.Sprintf("has %d ready", d.Status.ReadyReplicas), diagnosis.That("status.readyReplicas", "", diagnosis.Is, strconv.Itoa(int(d.Status.ReadyReplicas))))}
}

// owned is the name of what a Workload would be owned by.
func (c *Case) owned() string {
	if c.Held != nil {
		return c.Held.Owner.Name
	}
	return c.Pod.Name
}

// Head is a Workload that stands before another in a queue that passes over nobody.
type Head struct {
	Workload, Queue *unstructured.Unstructured
}

// Ref is the Workload for people.
func (h *Head) Ref() string {
	return view.ObjectRef("Workload", h.Workload.GetNamespace(), h.Workload.GetName())
}

// Ahead is the Workload that a StrictFIFO queue tries before this one, and that has no quota: Kueue
// looks at nobody behind it, whatever they ask for (pkg/queue/cluster_queue.go). nil where Kueue has
// looked at this one, and what it lacked is lacking still, and where the order is not known.
func (c *Case) Ahead(w *unstructured.Unstructured) *Head {
	queue := c.ClusterQueue(w)
	if why, _ := Why(w); queue == nil || why != "" && !c.QuotaOf(w).Outdated() || nestedText(queue, "spec", "queueingStrategy") != "StrictFIFO" {
		return nil
	}
	stand := []*unstructured.Unstructured{w}
	for _, other := range c.Cluster.State.QueuedWorkloads {
		if own := c.ClusterQueue(other); own != nil && own.GetName() == queue.GetName() && pending(other) {
			stand = append(stand, other)
		}
	}
	if first := slices.MinFunc(stand, inTurn); first != w {
		return &Head{Workload: first, Queue: queue}
	}
	return nil
}

// inTurn orders Workloads as Kueue's queues do: by priority, then by age.
func inTurn(a, b *unstructured.Unstructured) int {
	of := func(w *unstructured.Unstructured) int64 {
		p, _, _ := unstructured.NestedInt64(w.Object, "spec", "priority") //nolint:errcheck // none is 0
		return p
	}
	return cmp.Or(cmp.Compare(of(b), of(a)), queuedAt(a).Compare(queuedAt(b)), cmp.Compare(a.GetName(), b.GetName()))
}

// queuedAt is since when a Workload stands where it does: one that gave its quota back because its pods were
// not ready in time, or a check wanted it tried again, stands behind those that were there then
// (GetQueueOrderTimestamp in pkg/workload).
func queuedAt(w *unstructured.Unstructured) time.Time {
	if k := scaling.ConditionOf(w, "Evicted"); k.Met() && (k.Reason == "PodsReadyTimeout" || k.Reason == "AdmissionCheck") {
		return k.Since
	}
	return w.GetCreationTimestamp().Time
}

// says tells of the head of the queue.
func (h *Head) says() (string, []diagnosis.Evidence) {
	why, fact := Why(h.Workload)
	return fmt.Sprintf("%s stands before it in ClusterQueue %s, which is StrictFIFO and passes over nobody", h.Ref(), h.Queue.GetName()), []diagnosis.Evidence{
		diagnosis.Fact(refOf("ClusterQueue", h.Queue), "spec.queueingStrategy is StrictFIFO", diagnosis.That("spec.queueingStrategy", "", diagnosis.Is, "StrictFIFO")),
		diagnosis.Fact(h.Ref(), fact, whyClaims(h.Workload, why)...)}
}
