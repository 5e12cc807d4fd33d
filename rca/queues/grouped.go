package queues

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
	"github.com/unpend/unpend/rca/view"
)

// Grouped says whether the pods do not exist because their own scheduler has not let their group
// into its queue: all that can be told of them is what it says of the group.
func (c *Case) Grouped() bool { return c.Held != nil && c.Held.Group != "" }

// stands is the evidence that a group waits in the place of its pods; none for pods that exist.
func (c *Case) stands() []diagnosis.Evidence {
	o := c.Group()
	if !c.Grouped() || o == nil {
		return nil
	}
	r, phase, queue := c.Held, nestedText(o, "status", "phase"), nestedText(o, "spec", "queue")
	fact := fmt.Sprintf("stands for %s/%s, of which no pod exists; ", strings.ToLower(r.Owner.Kind), r.Owner.Name)
	claims := []diagnosis.Claim{diagnosis.That("count(members)", "", diagnosis.Is, "0")}
	if phase != "" {
		fact += "is " + phase + ", "
		claims = append(claims, diagnosis.That("status.phase", "", diagnosis.Is, phase))
	}
	if queue != "" {
		claims = append(claims, diagnosis.That("spec.queue", "", diagnosis.Is, queue))
	}
	return []diagnosis.Evidence{diagnosis.Fact(view.ObjectRef("PodGroup", o.GetNamespace(), o.GetName()), fact+"in queue "+r.Queue, claims...)}
}

// OfQueue is what Volcano's queues have of what is asked, the group's own and those above it, and
// who counts as using it without a pod that runs; nothing for pods of other schedulers.
func (c *Case) OfQueue() []diagnosis.Evidence {
	asks, _, _ := c.AsksAtOnce()
	out := c.stands()
	if c.Grouped() { // of pods that exist their own conditions are told
		for _, w := range c.groupWords() {
			out = append(out, w.Evidence())
		}
	}
	for name, o := range c.VolcanoQueues {
		if o == nil {
			break
		}
		for _, r := range slices.Sorted(maps.Keys(asks)) {
			if q := asks[r]; q.IsZero() || !strings.Contains(string(r), "/") {
				continue // CPU and memory are named in the words, where they are what is short
			}
			out = append(out, hasOf(o, r)...)
			out = append(out, c.countedIn(name, r)...)
		}
	}
	return out
}

// hasOf is what a queue of Volcano may hold of a resource, and what it holds; nothing where it
// says nothing of it.
func hasOf(queue *unstructured.Unstructured, r corev1.ResourceName) []diagnosis.Evidence {
	var parts []string
	var claims []diagnosis.Claim
	for _, of := range [][2]string{{"spec", "capability"}, {"spec", "deserved"}, {"spec", "guarantee"}, {"status", "allocated"}} {
		path := []string{of[0], of[1]}
		if of[1] == "guarantee" {
			path = append(path, "resource")
		}
		if q, has := Quantities(queue, path...)[r]; has {
			parts = append(parts, of[1]+" "+q.String())
			claims = append(claims, diagnosis.That(strings.Join(path, "."), string(r), diagnosis.Is, q.String()))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []diagnosis.Evidence{diagnosis.Fact(refOf("Queue", queue), fmt.Sprintf("%s: %s", r, strings.Join(parts, ", ")), claims...)}
}

// maxCounted is how many groups are named that count as using a queue.
const maxCounted = 3

// Counted is another group that Volcano has let into its queue and not begun: what it asks counts as
// used (Volcano's capacity and proportion plugins, inqueue), whether it ever fits or not.
type Counted struct {
	Group    *unstructured.Unstructured
	Queue    string
	Resource corev1.ResourceName
	Asks     resource.Quantity
}

// Ref is the group for people.
func (k *Counted) Ref() string {
	return view.ObjectRef("PodGroup", k.Group.GetNamespace(), k.Group.GetName())
}

// Counted are those of the queues that the pod's group is for, of what it asks: devices alone.
func (c *Case) Counted() []Counted {
	asks, _, _ := c.AsksAtOnce()
	var out []Counted
	for name, o := range c.VolcanoQueues {
		if o == nil {
			break
		}
		for _, r := range slices.Sorted(maps.Keys(asks)) {
			if q := asks[r]; !q.IsZero() && strings.Contains(string(r), "/") {
				out = append(out, countedOf(c, name, r)...)
			}
		}
	}
	return out
}

// countedOf are those of one queue and one resource.
func countedOf(c *Case, queue string, r corev1.ResourceName) []Counted {
	var out []Counted
	for _, g := range c.Cluster.State.PodGroups.Volcano {
		asks, has := Quantities(g, "spec", "minResources")[r]
		mine := g.GetNamespace() == c.Pod.Namespace && (c.Held != nil && g.GetName() == c.Held.Group || g == c.Group())
		if mine || !has || asks.IsZero() || cmp.Or(nestedText(g, "spec", "queue"), "default") != queue || nestedText(g, "status", "phase") != "Inqueue" || len(out) == maxCounted {
			continue
		}
		out = append(out, Counted{Group: g, Queue: queue, Resource: r, Asks: asks})
	}
	return out
}

// countedIn is the evidence of them.
func (c *Case) countedIn(queue string, r corev1.ResourceName) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, k := range countedOf(c, queue, r) {
		out = append(out, diagnosis.Fact(k.Ref(), fmt.Sprintf("is Inqueue in %s, and counts as using %s %s", queue, k.Asks.String(), r),
			diagnosis.That("status.phase", "", diagnosis.Is, "Inqueue"), diagnosis.That("spec.minResources", string(r), diagnosis.Is, k.Asks.String())))
	}
	return out
}

// Missing is how much of a resource the pod's group asks for beyond what is free on all nodes together.
func Missing(c *Case, r corev1.ResourceName) int64 {
	g := c.Group()
	if g == nil {
		return 0
	}
	asked := Quantities(g, "spec", "minResources")[r]
	missing := asked.Value()
	for _, n := range c.Cluster.SortedNodes() {
		missing -= n.Allocatable(r) - n.HeldOf(r)
	}
	return max(0, missing)
}
