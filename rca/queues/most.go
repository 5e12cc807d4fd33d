package queues

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// beyondMost are Kueue's words of what is more than a flavor could ever give, now and before 0.9 (pkg/scheduler/flavorassigner).
var beyondMost = []*regexp.Regexp{
	regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \((\S+)\) \+ current podset request \((\S+)\) > maximum capacity \((\S+)\)`),
	regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), request > maximum capacity \((\S+) > (\S+)\)`),
}

// Short is what Kueue wants of one flavor, of that for pod sets before, and the most that it could give.
type Short struct {
	Resource, Flavor    string
	Needs, Before, Most resource.Quantity
}

// Shorts are what a Workload wants and could never have by Kueue's own figures, each flavor once with the most that is wanted of it;
// none where one of them is no quantity.
func Shorts(w *unstructured.Unstructured) []Short {
	why, _ := Why(w)
	var out []Short
	for at, words := range beyondMost {
		for _, m := range words.FindAllStringSubmatch(why, -1) {
			s := Short{Resource: m[1], Flavor: strings.TrimSuffix(m[2], ",")}
			figures := make([]resource.Quantity, 0, len(m))
			for _, text := range m[3:] {
				if q, err := resource.ParseQuantity(text); err == nil {
					figures = append(figures, q)
				}
			}
			if len(figures) != len(m)-3 {
				return nil
			}
			s.Needs, s.Most = figures[0], figures[len(figures)-1]
			if at == 0 {
				s.Before = figures[0]
				s.Needs.Add(figures[1])
			}
			if had := slices.IndexFunc(out, func(o Short) bool { return o.Resource == s.Resource && o.Flavor == s.Flavor }); had < 0 {
				out = append(out, s)
			} else if s.Needs.Cmp(out[had].Needs) > 0 {
				out[had] = s
			}
		}
	}
	return out
}

// CouldTake says whether its ClusterQueue could take a Workload that it never can as it is, if each pod asked so much, by
// Kueue's own figures: false where it does not say them, or not of one pod set.
func CouldTake(w *unstructured.Unstructured, asks corev1.ResourceList) bool {
	sets, all := nested(w, "spec", "podSets"), Shorts(w)
	if len(sets) != 1 || len(all) == 0 {
		return false
	}
	return !slices.ContainsFunc(all, func(s Short) bool {
		wants := asks[corev1.ResourceName(s.Resource)].DeepCopy()
		wants.Mul(int64(view.AsInt(sets[0]["count"])))
		wants.Add(s.Before)
		return wants.Cmp(s.Most) > 0
	})
}
