package full

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/queues"
)

// ByHowMuch is from what to what the quota of a ClusterQueue is to be raised at the least, by Kueue's own figures: empty where it
// does not say them of one resource alone, or where a cohort could lend some of it, so that they are not those of the quota.
func ByHowMuch(c *queues.Case, w *unstructured.Unstructured) string {
	q := c.ClusterQueue(w)
	if q == nil || inCohort(q) {
		return ""
	}
	all := shorts(w)
	if len(all) == 0 {
		all = unused(q, w)
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(s short) bool { return s.Resource != all[0].Resource }) {
		return ""
	}
	var parts, flavors []string
	for i, s := range all {
		flavors = append(flavors, s.Flavor)
		if i+1 < len(all) && all[i+1].Needs.Cmp(s.Needs) == 0 && all[i+1].Most.Cmp(s.Most) == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("from %s to %s %s of flavor %s", s.Most.String(), s.Needs.String(), s.Resource, strings.Join(flavors, " or ")))
		flavors = nil
	}
	return strings.Join(parts, ", or ")
}

// inCohort says whether a ClusterQueue may borrow: then what it could have at most is more than its own quota.
func inCohort(q *unstructured.Unstructured) bool {
	for _, field := range []string{"cohort", "cohortName"} {
		if name, _, err := unstructured.NestedString(q.Object, "spec", field); err == nil && name != "" {
			return true
		}
	}
	return false
}
