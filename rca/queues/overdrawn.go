package queues

import (
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

// Overdrawn is how much more a queue of Volcano may hold than what is above it has.
type Overdrawn struct {
	Resource corev1.ResourceName
	May, Has resource.Quantity
	// Of has it: a queue, or "all nodes". Short is the first node that offers less of it than it has; empty for none.
	Of, Short string
}

// less says what is above the queue; how much all nodes have shows each of them.
func (o *Overdrawn) less() string {
	if o.Of == allNodes {
		return o.Of + " together have less"
	}
	return o.Of + " above it only " + o.Has.String()
}

const allNodes = "all nodes"

// tree is a case whose queues stand above each other.
type tree struct{ *Case }

// root is the queue above all others; what it may hold is what all nodes have (plugins/capacity).
const root = "root"

// broken finds the queue that may hold more than what is above it. Where queues stand above each other, Volcano's
// scheduler held such a tree for broken and took nobody's work, and said so in its log alone (plugins/capacity,
// checkHierarchicalQueue; volcano issues 4684 and 4819): the loss of one GPU was enough. Later versions go on with what is
// there. So it is told of a group that is Pending, and of which no word says that its queue is full.
func (c tree) broken() *Broken {
	o := c.Group()
	w, told := c.Refused()
	if o == nil || nestedText(o, "status", "phase") != "Pending" || !told || w.OfQueue() || c.Cluster.State.Unread["Node"] != "" || !c.tiered() {
		return nil
	}
	for _, q := range byName(c.Cluster.State.Queues.Volcano) {
		if over := c.overdrawn(q); over != nil {
			b := &Broken{Resource: "queues.scheduling.volcano.sh", Name: q.GetName(), Over: over}
			b.Finding = *view.Found(diagnosis.Likely, fmt.Sprintf("Volcano's Queue %s may hold %s %s, and %s: with such a tree of queues schedulers of older versions take nobody's work, and say it in their log alone", b.Name, over.May.String(), over.Resource, over.less()),
				append([]diagnosis.Evidence{w.Evidence(), diagnosis.Fact(refOf("Queue", q), fmt.Sprintf("spec.capability: %s %s", over.Resource, over.May.String()), diagnosis.That("spec.capability", string(over.Resource), diagnosis.Is, over.May.String()))}, c.has(over)...)...)
			return b
		}
	}
	return nil
}

// tiered says whether queues stand above each other: a parent other than the root has no meaning without.
func (c tree) tiered() bool {
	return c.SchedulerName() == "volcano" && c.Cluster.State.Unread["Queue.scheduling.volcano.sh"] == "" && slices.ContainsFunc(c.Cluster.State.Queues.Volcano, func(q *unstructured.Unstructured) bool {
		parent := nestedText(q, "spec", "parent")
		return parent != "" && parent != root
	})
}

func byName(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(slices.Values(all), func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// overdrawn holds a queue's capability to that of the queue above it, or to what all nodes have; a resource that the
// queue above does not name it has from further up.
func (c tree) overdrawn(q *unstructured.Unstructured) *Overdrawn {
	if q.GetName() == root {
		return nil
	}
	may := Quantities(q, "spec", "capability")
	for _, r := range slices.Sorted(maps.Keys(may)) {
		over := Overdrawn{Resource: r, May: may[r]}
		for at, depth := q, 0; over.Of == "" && depth < maxQueues; depth++ {
			parent := nestedText(at, "spec", "parent")
			if parent == "" || parent == root {
				over.Has, over.Of, over.Short = c.onAllNodes(r)
				break
			}
			if at = objectOf(c.Cluster.State.Queues.Volcano, "", parent); at == nil {
				break
			}
			if has, names := Quantities(at, "spec", "capability")[r]; names {
				over.Has, over.Of = has, "Queue "+parent
			}
		}
		if over.Of != "" && over.May.Cmp(over.Has) > 0 {
			return &over
		}
	}
	return nil
}

// onAllNodes is how much of a resource nodes offer; of is empty where none does: then it is no question of how much.
func (c tree) onAllNodes(r corev1.ResourceName) (has resource.Quantity, of, short string) {
	for _, n := range c.Cluster.SortedNodes() {
		offers, capacity := n.Status.Allocatable[r], n.Status.Capacity[r]
		if has.Add(offers); short == "" && strings.Contains(string(r), "/") && offers.Cmp(capacity) < 0 {
			short = n.Name
		}
	}
	if !has.IsZero() {
		of = allNodes
	}
	return has, of, short
}

// has is the evidence of what is above the queue.
func (c tree) has(o *Overdrawn) []diagnosis.Evidence {
	if name, ok := strings.CutPrefix(o.Of, "Queue "); ok {
		return []diagnosis.Evidence{diagnosis.Fact("Queue/"+name, fmt.Sprintf("spec.capability: %s %s", o.Resource, o.Has.String()), diagnosis.That("spec.capability", string(o.Resource), diagnosis.Is, o.Has.String()))}
	}
	var out []diagnosis.Evidence
	for _, n := range c.Cluster.SortedNodes() {
		q, has := n.Status.Allocatable[o.Resource]
		if !has {
			continue
		}
		fact, claims := fmt.Sprintf("offers %s %s", q.String(), o.Resource), []diagnosis.Claim{diagnosis.That(diagnosis.Allocatable, string(o.Resource), diagnosis.Is, q.String())}
		if n.Name == o.Short {
			capacity := n.Status.Capacity[o.Resource]
			fact, claims = fact+" of "+capacity.String(), append(claims, diagnosis.That(diagnosis.Capacity, string(o.Resource), diagnosis.Is, capacity.String()))
		}
		out = append(out, diagnosis.Fact(n.Ref(), fact, claims...))
	}
	return out
}
