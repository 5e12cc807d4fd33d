package full

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Nominal is the most that one flavor of a ClusterQueue has of a resource; false where none has a quota of it.
func Nominal(q *unstructured.Unstructured, name corev1.ResourceName) (most resource.Quantity, known bool) {
	groups, _, _ := unstructured.NestedSlice(q.Object, "spec", "resourceGroups") //nolint:errcheck // what is no list has none
	for _, g := range groups {
		for _, flavor := range items(g, "flavors") {
			for _, r := range items(flavor, "resources") {
				if has, err := resource.ParseQuantity(fmt.Sprint(r["nominalQuota"])); err == nil && r["name"] == string(name) && (!known || has.Cmp(most) > 0) {
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
