// Package full tells of queues by their own figures. Of Kueue's it says who has of a quota and could be preempted, and whether a
// Workload borrows. Of Volcano's it tells of those that have too little left for a pod: what they may hold, what they
// count as given, and which workloads have it. Volcano itself says of such a pod that all nodes are unavailable, or that
// a quota is insufficient, and neither of which queue nor by how much.
package full

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Queue is one that counts so much as given that what is asked does not fit beside it.
type Queue struct {
	Name     string
	Resource corev1.ResourceName
	May, Has resource.Quantity // spec.capability, status.allocated
	Asks     resource.Quantity // together: of the gang that has not begun, else of the pod
	Holders  []Holder          // the others, who has most of it first
	Own      Holder            // the pod's own workload
}

// Holder is a workload whose pods run from the queue.
type Holder struct {
	Of   incident.Ref
	Has  resource.Quantity
	Pods []*corev1.Pod
}

// Of is the first queue from the pod's own upward; nil where each has enough left, or does not say what it may hold.
func Of(c *queues.Case) *Queue {
	asks := asked(c)
	for name, o := range c.VolcanoQueues {
		if o == nil {
			return nil
		}
		may, has := queues.Quantities(o, "spec", "capability"), queues.Quantities(o, "status", "allocated")
		for _, r := range slices.Sorted(maps.Keys(may)) {
			wants, limit, given := asks[r], may[r], has[r]
			together := given.DeepCopy()
			together.Add(wants)
			if wants.IsZero() || given.IsZero() || together.Cmp(limit) <= 0 {
				continue // what it could not hold were it empty is another finding
			}
			q := &Queue{Name: name, Resource: r, May: limit, Has: given, Asks: wants}
			q.held(c)
			return q
		}
	}
	return nil
}

// asked is what a gang that has not begun asks at once; of one that has, each pod is placed for itself.
func asked(c *queues.Case) map[corev1.ResourceName]resource.Quantity {
	if g := c.Group(); g != nil && text(g, "status", "phase") == "Running" {
		return view.PodRequests(c.Pod)
	}
	asks, _, _ := c.AsksAtOnce()
	return asks
}

// held finds whose pods run from the queue, or from one below it.
func (q *Queue) held(c *queues.Case) {
	st, below := c.Cluster.State, q.below(c)
	groups := map[string]string{}
	for _, g := range st.PodGroups.Volcano {
		groups[g.GetNamespace()+"/"+g.GetName()] = cmp.Or(text(g, "spec", "queue"), "default")
	}
	by := map[incident.Ref]*Holder{}
	for _, p := range st.Pods {
		amount := view.PodRequests(p)[q.Resource]
		if p.Spec.NodeName == "" || view.Ended(p) || amount.IsZero() || !below[groups[view.GangOf(p)]] {
			continue
		}
		of := c.Cluster.WorkloadOf(p)
		if by[of] == nil {
			by[of] = &Holder{Of: of}
		}
		by[of].Has.Add(amount)
		by[of].Pods = append(by[of].Pods, p)
	}
	if own := by[c.Incident.Workload]; own != nil {
		q.Own = *own
		delete(by, c.Incident.Workload)
	}
	for _, h := range by {
		q.Holders = append(q.Holders, *h)
	}
	slices.SortFunc(q.Holders, func(a, b Holder) int {
		return cmp.Or(b.Has.Cmp(a.Has), strings.Compare(a.Of.Namespace+"/"+a.Of.Name, b.Of.Namespace+"/"+b.Of.Name), strings.Compare(a.Of.Kind, b.Of.Kind))
	})
}

// below are the queue and those that stand below it: what they give out counts for it, too.
func (q *Queue) below(c *queues.Case) map[string]bool {
	all := c.Cluster.State.Queues.Volcano
	out := map[string]bool{q.Name: true}
	for range all { // as deep as there are queues
		for _, o := range all {
			if out[text(o, "spec", "parent")] {
				out[o.GetName()] = true
			}
		}
	}
	return out
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return s
}

// Left is what the queue may give yet.
func (q *Queue) Left() string {
	left := q.May.DeepCopy()
	left.Sub(q.Has)
	if left.Sign() < 0 {
		return "0"
	}
	return left.String()
}

// Says is what is the matter.
func (q *Queue) Says() string {
	return fmt.Sprintf("Volcano's Queue %s may hold %s %s and counts %s as given: %s more do not fit", q.Name, q.May.String(), q.Resource, q.Has.String(), q.Asks.String())
}

// mostPods is how many pods of a workload are named that hold of the queue.
const mostPods = 3

// Evidence is what the queue says of itself, what is asked, and the pods of who has most of it.
func (q *Queue) Evidence(c *queues.Case) []diagnosis.Evidence {
	out := []diagnosis.Evidence{diagnosis.Fact("Queue/"+q.Name, fmt.Sprintf("%s: capability %s, allocated %s", q.Resource, q.May.String(), q.Has.String()),
		diagnosis.That("spec.capability", string(q.Resource), diagnosis.Is, q.May.String()), diagnosis.That("status.allocated", string(q.Resource), diagnosis.Is, q.Has.String()))}
	claims, about := c.AsksOf(q.Resource, q.Asks), view.PodRef(c.Pod)
	if g := c.Group(); g != nil && len(claims) > 0 && strings.HasPrefix(claims[0].Path, "spec.minResources") {
		about = view.ObjectRef("PodGroup", g.GetNamespace(), g.GetName())
	}
	out = append(out, diagnosis.Fact(about, fmt.Sprintf("asks for %s %s", q.Asks.String(), q.Resource), claims...))
	for _, h := range append(slices.Clone(q.Holders[:min(1, len(q.Holders))]), q.Own) {
		for _, p := range h.Pods[:min(mostPods, len(h.Pods))] {
			amount := view.PodRequests(p)[q.Resource]
			out = append(out, diagnosis.Fact(view.PodRef(p), fmt.Sprintf("runs from queue %s on %s, and asks for %s %s", q.Name, p.Spec.NodeName, amount.String(), q.Resource), view.Holding(p, q.Resource, amount.String())...))
		}
	}
	return out
}

// Who is the one to wait for: the other workload that has most of it, or the pod's own; empty where no pod shows it.
func (q *Queue) Who() string {
	if len(q.Holders) == 0 {
		if len(q.Own.Pods) == 0 {
			return ""
		}
		return fmt.Sprintf("%s of its own, which have %s of them", view.CountOf(len(q.Own.Pods), "pod"), q.Own.Has.String())
	}
	h := q.Holders[0]
	out := fmt.Sprintf("%s/%s, which has %s of them", h.Of.Namespace, h.Of.Name, h.Has.String())
	if more := len(q.Holders) - 1; more > 0 {
		out += fmt.Sprintf(", or %d more", more)
	}
	return out
}

// Enough is the least that the queue would have to hold for what is asked beside what it counts as given.
func (q *Queue) Enough() string {
	sum := q.Has.DeepCopy()
	sum.Add(q.Asks)
	return sum.String()
}
