package queues

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// VolcanoQueues goes from the Queue of the pod's PodGroup up to the root's children, by name;
// nil with the name of one that was not read ends it.
func (c *Case) VolcanoQueues(yield func(string, *unstructured.Unstructured) bool) {
	st := c.Cluster.State
	if c.SchedulerName() != "volcano" || st.Unread["Queue.scheduling.volcano.sh"] != "" {
		return
	}
	name := c.Pod.Annotations["scheduling.volcano.sh/queue-name"]
	if o := c.Group(); o != nil {
		name = cmp.Or(nestedText(o, "spec", "queue"), name)
	}
	for depth := 0; name != "" && name != "root" && depth < maxQueues; depth++ {
		o := objectOf(st.Queues.Volcano, "", name)
		if !yield(name, o) || o == nil {
			return
		}
		name = nestedText(o, "spec", "parent")
	}
}

// Excess is what a pod, or its group at once, asks of a queue that may never hold so much:
// nobody who ends gives it room.
type Excess struct {
	Queue       string
	Resource    corev1.ResourceName
	Asks, Holds resource.Quantity
	view.Finding
}

// Beyond compares what is asked with the capability of Volcano's queues, resource by resource;
// nil where it fits into all of them when they are empty. A resource that a capability does
// not name is another plugin's affair.
func (c *Case) Beyond() *Excess {
	asks, of, ref := c.AsksAtOnce()
	for name, o := range c.VolcanoQueues {
		if o == nil {
			return nil
		}
		may := Quantities(o, "spec", "capability")
		for _, r := range slices.Sorted(maps.Keys(may)) {
			wants, limit := asks[r], may[r]
			if wants.Cmp(limit) <= 0 {
				continue
			}
			x := &Excess{Queue: name, Resource: r, Asks: wants, Holds: limit}
			x.Finding = *view.Found(diagnosis.Likely, fmt.Sprintf("%s asks for %s %s, and Volcano's Queue %s may hold %s of it in all", of, wants.String(), r, name, limit.String()),
				diagnosis.Fact(refOf("Queue", o), fmt.Sprintf("spec.capability: %s %s", r, limit.String()), diagnosis.That("spec.capability", string(r), diagnosis.Is, limit.String())),
				diagnosis.Fact(ref, fmt.Sprintf("asks for %s %s", wants.String(), r), c.AsksOf(r, wants)...))
			return x
		}
	}
	return nil
}

// AsksOf claims what a group asks together, or what the pod does that asks more alone.
func (c *Case) AsksOf(r corev1.ResourceName, wants resource.Quantity) []diagnosis.Claim {
	if o := c.Group(); o != nil {
		if least, has := Quantities(o, "spec", "minResources")[r]; has && least.Cmp(wants) == 0 {
			return []diagnosis.Claim{diagnosis.That("spec.minResources", string(r), diagnosis.Is, wants.String())}
		}
	}
	return c.Cluster.OfPod(c.Pod, diagnosis.That(diagnosis.Requests, string(r), diagnosis.Is, wants.String()))
}

// AsksAtOnce is what has to be granted together: what the pod's PodGroup says, and no less than
// the pod itself asks.
func (c *Case) AsksAtOnce() (asks map[corev1.ResourceName]resource.Quantity, of, ref string) {
	asks, of, ref = view.PodRequests(c.Pod), "it", c.podRef()
	if o := c.Group(); o != nil {
		if least := Quantities(o, "spec", "minResources"); len(least) > 0 {
			asks = maps.Clone(asks)
			for r, q := range least {
				if own := asks[r]; own.Cmp(q) < 0 {
					asks[r] = q
				}
			}
			of, ref = "its gang together", "PodGroup/"+o.GetNamespace()+"/"+o.GetName()
		}
	}
	return asks, of, ref
}

// Quantities is a list of resources; what is no quantity is left out.
func Quantities(o *unstructured.Unstructured, path ...string) map[corev1.ResourceName]resource.Quantity {
	list, _, err := unstructured.NestedMap(o.Object, path...)
	if err != nil {
		return nil
	}
	out := map[corev1.ResourceName]resource.Quantity{}
	for name, v := range list {
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil {
			out[corev1.ResourceName(name)] = q
		}
	}
	return out
}
