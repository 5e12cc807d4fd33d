package queues

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Broken is a queue that does not exist, is closed, or lacks what it names itself: it admits
// nobody as it is, and most schedulers say nothing of it.
type Broken struct {
	view.Finding
	// Resource is the queue's for kubectl, Namespace and Name which; Missing: it is not
	// there.
	Resource, Namespace, Name string
	Missing                   bool
	// Unnamed: nothing says which queue it is for. Offers are those that its namespace has.
	Unnamed bool
	Offers  []string
	// Shard is whose scheduler does not see the queue, which is there; nil else.
	Shard *Shard
	// Kind is the queue's. Policy is the stopPolicy by which somebody has stopped it; Active why it is not active,
	// as Kueue says.
	Kind, Policy string
	Active       scaling.Condition
	// Over is how much more it may hold than what is above it; nil else.
	Over *Overdrawn
	// Meant is a queue that the pod names by label By, which its scheduler does not read; it reads Label.
	Meant, By, Label string
}

// Broken finds it by the scheduler or the gate of the pod; nil for none.
func (c *Case) Broken() *Broken {
	if !c.asked {
		c.asked = true
		c.broken = cmp.Or(c.kueueBroken(), c.volcanoBroken(), c.kaiBroken())
	}
	return c.broken
}

// kueueBroken looks at the LocalQueue and its ClusterQueue.
func (c *Case) kueueBroken() *Broken {
	held := c.heldBy()
	if held == nil || Behind(c) != nil {
		return nil
	}
	w := c.Queued()
	name := c.queueName()
	if w != nil {
		name = cmp.Or(nestedText(w, "spec", "queueName"), name)
		if q := unnamed(c, w, name); q != nil {
			q.Evidence = append(q.Evidence, held...)
			return q
		}
	}
	if q := c.localBroken(w, c.Pod.Namespace, name); q != nil {
		q.Evidence = append(q.Evidence, held...)
		return q
	}
	return nil
}

// unnamed: Kueue holds what nobody has named a queue for, as where it is set up to look after all of a
// namespace (manageJobsWithoutQueueName) and that has no LocalQueue by the name of default.
func unnamed(c *Case, w *unstructured.Unstructured, name string) *Broken {
	if name != "" || c.Cluster.State.Unread["LocalQueue"] != "" {
		return nil
	}
	q := &Broken{Resource: "localqueues.kueue.x-k8s.io", Namespace: c.Pod.Namespace, Unnamed: true}
	says := "it names no queue, and Kueue admits nobody without one: namespace " + q.Namespace + " has "
	for _, local := range c.Cluster.State.Queues.Local {
		if local.GetNamespace() == q.Namespace {
			q.Offers = append(q.Offers, local.GetName())
		}
	}
	slices.Sort(q.Offers)
	switch len(q.Offers) {
	case 0:
		says += "no LocalQueue"
	case 1:
		says += "LocalQueue " + q.Offers[0]
	default:
		says += "LocalQueues " + strings.Join(q.Offers, ", ")
	}
	q.Finding = *view.Found(diagnosis.Proven, says,
		diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), "spec.queueName is not set", diagnosis.That("spec.queueName", "", diagnosis.Absent, "")),
		unlabelled(c))
	return q
}

// unlabelled is that the pod, or what makes it, has no label that names a queue.
func unlabelled(c *Case) diagnosis.Evidence {
	claim := diagnosis.That(diagnosis.Labels, incident.QueueLabel, diagnosis.Absent, "")
	if r := c.Held; r != nil {
		return diagnosis.Fact(view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name), "no label "+incident.QueueLabel, claim)
	}
	return diagnosis.Fact(c.podRef(), "no label "+incident.QueueLabel, c.Cluster.OfPod(c.Pod, claim)...)
}

// misset are Kueue's words, in the condition of a Workload, for a queue that is not set up
// (pkg/controller/core/workload_controller.go).
var misset = regexp.MustCompile(`(LocalQueue|ClusterQueue) \S* ?(doesn't exist|is inactive|is stopped)|is inactive|flavor \S+ not found|doesn't match ClusterQueue selector`)

// localBroken says what is wrong with a LocalQueue, or with its ClusterQueue; nil for
// nothing that can be told.
func (c *Case) localBroken(w *unstructured.Unstructured, namespace, name string) *Broken {
	st := c.Cluster.State
	spoken := false // Kueue has looked at its queue, and says something else
	if w != nil {
		why, _ := Why(w)
		spoken = why != "" && !misset.MatchString(why)
	}
	if local := objectOf(st.Queues.Local, namespace, name); name != "" && st.Unread["LocalQueue"] == "" && (local != nil || !spoken) {
		if local == nil {
			return missing("localqueues.kueue.x-k8s.io", "LocalQueue", namespace, name, "LocalQueue "+name+" does not exist in namespace "+namespace)
		}
		stopped := stoppedQueue(local, "localqueues.kueue.x-k8s.io", "LocalQueue")
		if stopped != nil && scaling.ConditionOf(local, "Active").Reason != "ClusterQueueIsInactive" {
			return stopped
		}
		if of := nestedText(local, "spec", "clusterQueue"); of != "" && st.Unread["ClusterQueue"] == "" {
			owner := objectOf(st.Queues.Cluster, "", of)
			if owner == nil {
				return missing("clusterqueues.kueue.x-k8s.io", "ClusterQueue", "", of, "LocalQueue "+name+" leads to ClusterQueue "+of+", which does not exist")
			}
			if q := stoppedQueue(owner, "clusterqueues.kueue.x-k8s.io", "ClusterQueue"); q != nil {
				return q
			}
		}
		if stopped != nil {
			return stopped
		}
	}
	if w == nil {
		return nil
	}
	if why, fact := Why(w); misset.MatchString(why) {
		return &Broken{Resource: "localqueues.kueue.x-k8s.io", Namespace: namespace, Name: name,
			Finding: *view.Found(diagnosis.Likely, "Kueue says: "+view.Cut(why, 160), diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), fact, diagnosis.Says(why)))}
	}
	return nil
}

// stoppedQueue says why a queue of Kueue admits nobody.
func stoppedQueue(o *unstructured.Unstructured, resource, kind string) *Broken {
	q := &Broken{Resource: resource, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	k := scaling.ConditionOf(o, "Active")
	switch policy := nestedText(o, "spec", "stopPolicy"); {
	case policy == "Hold" || policy == "HoldAndDrain":
		q.Policy = policy
		q.Finding = *view.Found(diagnosis.Proven, kind+" "+q.Name+" is stopped (stopPolicy "+policy+")", diagnosis.Fact(refOf(kind, o), "spec.stopPolicy is "+policy, diagnosis.That("spec.stopPolicy", "", diagnosis.Is, policy)))
	case k.Status == string(corev1.ConditionFalse):
		q.Active = k
		q.Finding = *view.Found(diagnosis.Proven, kind+" "+q.Name+" is not active: "+view.Cut(k.Words(), 160), diagnosis.Fact(refOf(kind, o), "Active=False "+view.Cut(k.Words(), 300), append(view.SaysOf(k), view.ConditionIs("Active", "False"))...))
	default:
		return nil
	}
	return q
}

// volcanoBroken looks at the Queue of the pod's PodGroup, and at those above it.
func (c *Case) volcanoBroken() *Broken {
	q := cmp.Or(c.volcanoClosed(), tree{c}.broken())
	if q != nil {
		q.Evidence = append(q.Evidence, c.stands()...)
	}
	return q
}

func (c *Case) volcanoClosed() *Broken {
	const resource, kind = "queues.scheduling.volcano.sh", "Queue"
	for name, o := range c.VolcanoQueues {
		if o == nil && name == "default" && len(c.Cluster.State.Queues.Volcano) == 0 {
			return nil // Volcano makes it when it starts
		}
		if o == nil {
			return missing(resource, kind, "", name, "Volcano's Queue "+name+" does not exist")
		}
		if state := nestedText(o, "status", "state"); state == "Closed" || state == "Closing" {
			return &Broken{Resource: resource, Name: name, Finding: *view.Found(diagnosis.Proven, "Volcano's Queue "+name+" is "+state, diagnosis.Fact(refOf(kind, o), "status.state is "+state, diagnosis.That("status.state", "", diagnosis.Is, state)))}
		}
	}
	return nil
}

// maxQueues bounds how far up queues are followed: some may be in a circle.
const maxQueues = 16

// kaiBroken looks at KAI's Queue and at those above it: KAI drops one without its parent.
func (c *Case) kaiBroken() *Broken {
	st := c.Cluster.State
	if st.Unread["Queue.scheduling.run.ai"] != "" || c.SchedulerName() != "kai-scheduler" && c.SchedulerName() != "runai-scheduler" {
		return nil
	}
	name := cmp.Or(c.Pod.Labels["kai.scheduler/queue"], c.Pod.Labels["runai/queue"])
	if o := c.Group(); o != nil {
		name = cmp.Or(nestedText(o, "spec", "queue"), name)
	}
	const resource, kind = "queues.scheduling.run.ai", "Queue"
	child, lowest := "", name
	for depth := 0; name != "" && depth < maxQueues; depth++ {
		o := objectOf(st.Queues.KAI, "", name)
		if o == nil {
			says := "KAI's Queue " + name + " does not exist"
			if child != "" {
				says = "KAI's Queue " + child + " names parent " + name + ", which does not exist"
			}
			q := missing(resource, kind, "", name, says)
			if child == "" {
				meant(c, q)
			}
			return q
		}
		if q := outOfShard(c, o, child, lowest); q != nil {
			return q
		}
		child, name = name, nestedText(o, "spec", "parentQueue")
	}
	if w, told := c.Refused(); told && child != "" && w.reason == "QueueDoesNotExist" {
		return &Broken{Resource: resource, Name: child, Finding: *view.Found(diagnosis.Likely, "KAI does not take Queue "+child+", though it exists: "+view.Quotable(w.message, 160)+" (has it a parent?)", w.Evidence())}
	}
	if o := objectOf(st.Queues.KAI, "", lowest); o != nil && nestedText(o, "spec", "parentQueue") == "" && refusedWithoutReason(c) && !c.runsFrom(lowest) {
		return &Broken{Resource: resource, Name: lowest, Finding: *view.Found(diagnosis.Likely, "KAI's Queue "+lowest+" has no parent: where queues have departments above them one at the top takes no work, and KAI says no more than that it cannot schedule",
			diagnosis.Fact(refOf(kind, o), "spec.parentQueue is not set", diagnosis.That("spec.parentQueue", "", diagnosis.Absent, "")))}
	}
	return nil
}

// meant finds a queue that exists in a label of the pod which KAI does not read, as runai/queue of its first versions: its
// group is then for the default queue.
func meant(c *Case, q *Broken) {
	if c.Group() == nil || c.Pod.Labels[kaiQueue] != "" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.Pod.Labels)) {
		if of := c.Pod.Labels[key]; strings.HasSuffix(key, "queue") && of != q.Name && objectOf(c.Cluster.State.Queues.KAI, "", of) != nil {
			q.Meant, q.By, q.Label = of, key, kaiQueue
			q.Says += fmt.Sprintf("; its pod names %s by label %s, which KAI does not read", of, key)
			q.Evidence = append(q.Evidence, diagnosis.Fact(c.podRef(), "has label "+key+"="+of+" and none "+kaiQueue, c.Cluster.OfPod(c.Pod, diagnosis.That(diagnosis.Labels, key, diagnosis.Is, of), diagnosis.That(diagnosis.Labels, kaiQueue, diagnosis.Absent, ""))...))
			return
		}
	}
}

// kaiQueue is the label by which KAI reads the queue of a pod, or of what owns it.
const kaiQueue = "kai.scheduler/queue"

// refusedWithoutReason says whether KAI refuses the pod, names neither queue nor node, and the
// default scheduler's filters would take it.
func refusedWithoutReason(c *Case) bool {
	w, told := c.Refused()
	return told && c.Fits && (w.message == "Unable to schedule pod" || w.message == "Unable to schedule podgroup")
}

// runsFrom says whether a pod of KAI's queue has a node: then it takes work.
func (c *Case) runsFrom(queue string) bool {
	return slices.ContainsFunc(c.Cluster.State.Pods, func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.SchedulerName == c.SchedulerName() && cmp.Or(p.Labels["kai.scheduler/queue"], p.Labels["runai/queue"]) == queue
	})
}

func missing(resource, kind, namespace, name, says string) *Broken {
	ref := kind + "/" + name
	if namespace != "" {
		ref = view.ObjectRef(kind, namespace, name)
	}
	return &Broken{Resource: resource, Namespace: namespace, Name: name, Missing: true, Finding: *view.Found(diagnosis.Proven, says, diagnosis.Fact(ref, "is not among those that were read", diagnosis.That("", "", diagnosis.Absent, "")))}
}

func refOf(kind string, o *unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return view.ObjectRef(kind, ns, o.GetName())
	}
	return kind + "/" + o.GetName()
}

func objectOf(all []*unstructured.Unstructured, namespace, name string) *unstructured.Unstructured {
	for _, o := range all {
		if o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

func nestedText(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(s)
}

// Ref is the queue for people.
func (q *Broken) Ref() string {
	if q.Namespace == "" {
		return fmt.Sprintf("%s %s", q.Resource, q.Name)
	}
	return fmt.Sprintf("-n %s %s %s", q.Namespace, q.Resource, q.Name)
}
