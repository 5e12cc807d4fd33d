package queues

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ofQuota is what the ClusterQueue has of the GPUs that the pod asks for, flavor by flavor, and
// which nodes each flavor stands for: quota in a flavor without such a node lets nobody run.
func (c *Case) ofQuota(w *unstructured.Unstructured) []diagnosis.Evidence {
	queue := c.ClusterQueue(w)
	if queue == nil {
		return nil
	}
	var out []diagnosis.Evidence
	for _, group := range nested(queue, "spec", "resourceGroups") {
		for _, flavor := range list(group, "flavors") {
			for _, has := range list(flavor, "resources") {
				name := corev1.ResourceName(wordOf(has, "name"))
				if !slices.ContainsFunc(view.AsksOf(c.Pod), func(a view.Ask) bool { return a.Resource == name }) {
					continue
				}
				out = append(out, quotaOf(queue, wordOf(flavor, "name"), has))
				if fact := c.nodesOf(wordOf(flavor, "name"), name); fact != "" {
					out = append(out, diagnosis.Evidence{Ref: "ResourceFlavor/" + wordOf(flavor, "name"), Fact: fact})
				}
			}
		}
	}
	return append(out, c.reserved(queue)...)
}

// quotaOf is the quota of one resource in one flavor, and what of it is reserved.
func quotaOf(queue *unstructured.Unstructured, flavor string, has map[string]any) diagnosis.Evidence {
	name := wordOf(has, "name")
	claims := []diagnosis.Claim{diagnosis.That("spec.resourceGroups", "", diagnosis.Contains, flavor), diagnosis.That("spec.resourceGroups", "", diagnosis.Contains, fmt.Sprint(has["nominalQuota"]))}
	fact := fmt.Sprintf("flavor %s: %s quota %v", flavor, name, has["nominalQuota"])
	for _, f := range nested(queue, "status", "flavorsReservation") {
		for _, r := range list(f, "resources") {
			if wordOf(f, "name") == flavor && wordOf(r, "name") == name {
				fact += fmt.Sprintf(", %v reserved", r["total"])
				claims = append(claims, diagnosis.That("status.flavorsReservation", "", diagnosis.Contains, fmt.Sprint(r["total"])))
				if b := fmt.Sprint(r["borrowed"]); r["borrowed"] != nil && b != "0" {
					fact += ", " + b + " of it borrowed"
				}
			}
		}
	}
	cohort := nestedText(queue, "spec", "cohort") + nestedText(queue, "spec", "cohortName") // v1beta1, v1beta2
	if cohort == "" {
		return diagnosis.Fact(refOf("ClusterQueue", queue), fact, claims...)
	}
	fact += ", cohort " + cohort
	for _, limit := range []struct{ field, says string }{{"borrowingLimit", "borrows at most"}, {"lendingLimit", "lends at most"}} {
		if v := has[limit.field]; v != nil {
			fact += fmt.Sprintf(", %s %v", limit.says, v)
		}
	}
	return diagnosis.Fact(refOf("ClusterQueue", queue), fact, claims...)
}

// nodesOf says which nodes a flavor stands for, by its labels, and what they offer; empty
// where the flavor was not read or stands for any node.
func (c *Case) nodesOf(flavor string, name corev1.ResourceName) string {
	o := objectOf(c.Cluster.State.Queues.Flavors, "", flavor)
	if o == nil || c.Cluster.State.Unread["Node"] != "" {
		return ""
	}
	labels, _, err := unstructured.NestedStringMap(o.Object, "spec", "nodeLabels")
	if err != nil || len(labels) == 0 {
		return ""
	}
	count, offered := 0, int64(0)
	for _, n := range c.Cluster.SortedNodes() {
		if !carries(n.Labels, labels) {
			continue
		}
		count++
		offered += n.Allocatable(name)
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	stands := "stands for nodes with " + strings.Join(texts, ", ")
	switch {
	case count == 0:
		return stands + ": no node has that now"
	case offered == 0:
		return fmt.Sprintf("%s: %s, and none of them offers %s", stands, view.CountOf(count, "node"), name)
	}
	return fmt.Sprintf("%s: %s with %d %s", stands, view.CountOf(count, "node"), offered, name)
}

func carries(has, wants map[string]string) bool {
	for key, value := range wants {
		if has[key] != value {
			return false
		}
	}
	return true
}

// list are the objects in a list of a field that was read.
func list(m map[string]any, field string) []map[string]any {
	return nested(&unstructured.Unstructured{Object: m}, field)
}
