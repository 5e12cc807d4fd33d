package queues

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// tooLittle is what Kueue found too little of, and in which flavor (flavorassigner.go).
var tooLittle = regexp.MustCompile(`insufficient unused quota for (\S+) in flavor (\S+), `)

// Quota is what the ClusterQueue of a Workload has, by its own figures, of what the Workload asks.
type Quota struct {
	c *Case
	w *unstructured.Unstructured
}

// QuotaOf is that of a Workload of the pod's.
func (c *Case) QuotaOf(w *unstructured.Unstructured) Quota { return Quota{c, w} }

// Outdated says that Kueue's last word on a Workload is that quota lacked, and that its ClusterQueue has all of
// that unused by now, by its own figures: more quota is not what it waits for. In a cohort others may have
// borrowed what looks unused.
func (q Quota) Outdated() bool {
	queue := q.queue()
	if queue == nil {
		return false
	}
	why, _ := Why(q.w)
	room := map[string]bool{} // by resource, in some flavor
	for _, m := range tooLittle.FindAllStringSubmatch(why, -1) {
		asks, asked := q.asks(m[1])
		left, known := unused(queue, m[2], m[1])
		room[m[1]] = room[m[1]] || asked && known && asks.Cmp(left) <= 0
	}
	for _, has := range room {
		if !has {
			return false
		}
	}
	return len(room) > 0
}

// queue is the ClusterQueue of the Workload where it shares with no other; nil where it does, or was not read.
func (q Quota) queue() *unstructured.Unstructured {
	queue := q.c.ClusterQueue(q.w)
	if queue == nil || cohortOf(queue) != "" {
		return nil
	}
	return queue
}

// Spare says whether a Workload's ClusterQueue has unused, in flavors that stand for a node, all the quota of GPUs that the
// Workload asks: more of it would bring the Workload nothing there. In a cohort that is not known.
func (q Quota) Spare(n *view.Node) bool {
	queue, asks := q.queue(), view.AsksOf(q.c.Pod)
	return queue != nil && len(asks) > 0 && !slices.ContainsFunc(asks, func(a view.Ask) bool {
		wants, known := q.asks(string(a.Resource))
		return !known || !slices.ContainsFunc(nested(queue, "spec", "resourceGroups"), func(group map[string]any) bool {
			return slices.ContainsFunc(list(group, "flavors"), func(of map[string]any) bool {
				f := flavorOf(q.c.Cluster, wordOf(of, "name"), a.Resource)
				left, known := unused(queue, f.name, string(a.Resource))
				return f.object != nil && carries(n.Labels, f.labels) && known && wants.Cmp(left) <= 0
			})
		})
	})
}

// asks is what all pods of a Workload ask of a resource together, as Kueue has counted it, or by the pod
// where all are as this one; false where neither tells.
func (q Quota) asks(name string) (sum resource.Quantity, known bool) {
	counted := nested(q.w, "status", "resourceRequests")
	for _, set := range counted {
		n, has := Quantities(&unstructured.Unstructured{Object: set}, "resources")[corev1.ResourceName(name)]
		if has {
			sum.Add(n)
		}
		known = known || has
	}
	sets := nested(q.w, "spec", "podSets")
	if len(counted) > 0 || len(sets) != 1 {
		return sum, known
	}
	sum = view.PodRequests(q.c.Pod)[corev1.ResourceName(name)]
	sum.Mul(int64(view.AsInt(sets[0]["count"])))
	return sum, true
}

// unused is what a ClusterQueue has left of a resource in a flavor, by its figures; false where they do not say.
func unused(queue *unstructured.Unstructured, flavor, name string) (left resource.Quantity, known bool) {
	var nominal, reserved any
	for _, group := range nested(queue, "spec", "resourceGroups") {
		nominal = ofFlavor(list(group, "flavors"), flavor, name, "nominalQuota", nominal)
	}
	reserved = ofFlavor(nested(queue, "status", "flavorsReservation"), flavor, name, "total", nil)
	left, err := resource.ParseQuantity(fmt.Sprint(nominal))
	used, bad := resource.ParseQuantity(fmt.Sprint(reserved))
	if err != nil || bad != nil {
		return left, false
	}
	left.Sub(used)
	return left, true
}

// ofFlavor is a field of what a list of flavors has of a resource, or what was known before.
func ofFlavor(flavors []map[string]any, flavor, name, field string, before any) any {
	for _, f := range flavors {
		for _, r := range list(f, "resources") {
			if wordOf(f, "name") == flavor && wordOf(r, "name") == name {
				return r[field]
			}
		}
	}
	return before
}
