package queues

import (
	"fmt"
	"slices"

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
		for _, of := range list(group, "flavors") {
			for _, has := range list(of, "resources") {
				name := corev1.ResourceName(wordOf(has, "name"))
				asks := view.AsksOf(c.Pod)
				at := slices.IndexFunc(asks, func(a view.Ask) bool { return a.Resource == name })
				if at < 0 {
					continue
				}
				f := flavorOf(c.Cluster, wordOf(of, "name"), name)
				out = append(out, quotaOf(queue, f.name, has))
				out = append(out, f.standsFor()...)
				out = append(out, f.placed(w, asks[at].Count)...)
			}
		}
	}
	return append(out, c.reserved(queue)...)
}

// quotaOf is the quota of one resource in one flavor, and what of it is reserved.
func quotaOf(queue *unstructured.Unstructured, flavor string, has map[string]any) diagnosis.Evidence {
	name := wordOf(has, "name")
	fact := fmt.Sprintf("flavor %s: %s quota %v", flavor, name, has["nominalQuota"])
	of := "flavors[name=" + flavor + "].resources[name=" + name + "]"
	claims := []diagnosis.Claim{diagnosis.That("spec.resourceGroups[*]."+of+".nominalQuota", "", diagnosis.Is, fmt.Sprint(has["nominalQuota"]))}
	reserved := "status.flavorsReservation[name=" + flavor + "].resources[name=" + name + "]"
	for _, f := range nested(queue, "status", "flavorsReservation") {
		for _, r := range list(f, "resources") {
			if wordOf(f, "name") == flavor && wordOf(r, "name") == name {
				fact += fmt.Sprintf(", %v reserved", r["total"])
				claims = append(claims, diagnosis.That(reserved+".total", "", diagnosis.Is, fmt.Sprint(r["total"])))
				if b := fmt.Sprint(r["borrowed"]); r["borrowed"] != nil && b != "0" {
					fact += ", " + b + " of it borrowed"
					claims = append(claims, diagnosis.That(reserved+".borrowed", "", diagnosis.Is, b))
				}
			}
		}
	}
	cohort := cohortOf(queue)
	if cohort == "" {
		return diagnosis.Fact(refOf("ClusterQueue", queue), fact, claims...)
	}
	fact += ", cohort " + cohort
	claims = append(claims, diagnosis.That("spec", "", diagnosis.Contains, cohort))
	for _, limit := range []struct{ field, says string }{{"borrowingLimit", "borrows at most"}, {"lendingLimit", "lends at most"}} {
		if v := has[limit.field]; v != nil {
			fact += fmt.Sprintf(", %s %v", limit.says, v)
			claims = append(claims, diagnosis.That("spec.resourceGroups[*]."+of+"."+limit.field, "", diagnosis.Is, fmt.Sprint(v)))
		}
	}
	return diagnosis.Fact(refOf("ClusterQueue", queue), fact, claims...)
}

// list are the objects in a list of a field that was read.
func list(m map[string]any, field string) []map[string]any {
	return nested(&unstructured.Unstructured{Object: m}, field)
}
