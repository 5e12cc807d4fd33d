package outside

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// beyondMost are Kueue's words of what is more than a flavor could ever give, now and before 0.9 (pkg/scheduler/flavorassigner).
var beyondMost = []*regexp.Regexp{
	regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \((\S+)\) \+ current podset request \((\S+)\) > maximum capacity \((\S+)\)`),
	regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), request > maximum capacity \((\S+) > (\S+)\)`),
}

// short is what Kueue wants of one flavor, and the most that it could give.
type short struct {
	resource, flavor string
	needs, most      resource.Quantity
}

// byHowMuch is from what to what the quota of a ClusterQueue is to be raised at the least, by Kueue's own figures: empty where it
// does not say them of one resource alone, or where a cohort could lend some of it, so that they are not those of the quota.
func byHowMuch(c *edit.Workload, w *unstructured.Unstructured) string {
	why, _ := queues.Why(w)
	all := shorts(why)
	if len(all) == 0 || slices.ContainsFunc(all, func(s short) bool { return s.resource != all[0].resource }) {
		return ""
	}
	if q := c.Queue.ClusterQueue(w); q == nil || inCohort(q) {
		return ""
	}
	var parts, flavors []string
	for i, s := range all {
		flavors = append(flavors, s.flavor)
		if i+1 < len(all) && all[i+1].needs.Cmp(s.needs) == 0 && all[i+1].most.Cmp(s.most) == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("from %s to %s %s of flavor %s", s.most.String(), s.needs.String(), s.resource, strings.Join(flavors, " or ")))
		flavors = nil
	}
	return strings.Join(parts, ", or ")
}

// shorts reads them, each flavor once with the most that is wanted of it.
func shorts(why string) []short {
	var out []short
	for at, words := range beyondMost {
		for _, m := range words.FindAllStringSubmatch(why, -1) {
			s := short{resource: m[1], flavor: strings.TrimSuffix(m[2], ",")}
			figures := make([]resource.Quantity, 0, len(m))
			for _, text := range m[3:] {
				if q, err := resource.ParseQuantity(text); err == nil {
					figures = append(figures, q)
				}
			}
			if len(figures) != len(m)-3 {
				return nil
			}
			s.needs, s.most = figures[0], figures[len(figures)-1]
			if at == 0 {
				s.needs.Add(figures[1])
			}
			if had := slices.IndexFunc(out, func(o short) bool { return o.resource == s.resource && o.flavor == s.flavor }); had < 0 {
				out = append(out, s)
			} else if s.needs.Cmp(out[had].needs) > 0 {
				out[had] = s
			}
		}
	}
	return out
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
