package full

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
)

// LowerHolder is who has quota of the ClusterQueue and a lower priority; nil for nobody.
func LowerHolder(c *queues.Case, q, w *unstructured.Unstructured) *queues.Holder {
	priority := func(w *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedFieldNoCopy(w.Object, "spec", "priority") //nolint:errcheck // none is 0
		return int64(view.AsInt(n))
	}
	for _, h := range c.Holders(q) {
		if h.Evicted == "" && h.Orphan == "" && priority(h.Workload) < priority(w) {
			return &h
		}
	}
	return nil
}

// Borrows says whether a Workload of one kind of pods, which request that, asks more of a resource than any flavor of its ClusterQueue has of its own.
func Borrows(q, w *unstructured.Unstructured, name corev1.ResourceName, pod corev1.ResourceList) bool {
	sets, _, err := unstructured.NestedSlice(w.Object, "spec", "podSets")
	if err != nil || len(sets) != 1 {
		return false
	}
	set, _ := sets[0].(map[string]any) //nolint:errcheck // what is no set has no count
	asks := pod[name].DeepCopy()
	asks.Mul(int64(view.AsInt(set["count"])))
	most, known := nominal(q, "", string(name))
	return known && asks.Cmp(most) > 0
}

// nominal is the most that one flavor of a ClusterQueue has of a resource, or that one alone; false where none has a quota of it.
func nominal(q *unstructured.Unstructured, only, name string) (most resource.Quantity, known bool) {
	groups, _, _ := unstructured.NestedSlice(q.Object, "spec", "resourceGroups") //nolint:errcheck // what is no list has none
	for _, g := range groups {
		for _, flavor := range items(g, "flavors") {
			if only != "" && flavor["name"] != only {
				continue
			}
			for _, r := range items(flavor, "resources") {
				if has, err := resource.ParseQuantity(fmt.Sprint(r["nominalQuota"])); err == nil && r["name"] == name && (!known || has.Cmp(most) > 0) {
					most, known = has, true
				}
			}
		}
	}
	return most, known
}

func items(of any, field string) []map[string]any {
	m, _ := of.(map[string]any) //nolint:errcheck // what is no object has none
	all, _ := m[field].([]any)  //nolint:errcheck // and what is no list
	var out []map[string]any
	for _, item := range all {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
