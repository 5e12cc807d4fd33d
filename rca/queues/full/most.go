package full

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
)

// beyondMost are Kueue's words of what is more than a flavor could ever give, now and before 0.9 (pkg/scheduler/flavorassigner).
var beyondMost = []*regexp.Regexp{
	regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \((\S+)\) \+ current podset request \((\S+)\) > maximum capacity \((\S+)\)`),
	regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), request > maximum capacity \((\S+) > (\S+)\)`),
}

// short is what Kueue wants of one flavor, of that for pod sets before, and the most that it could give.
type short struct {
	Resource, Flavor    string
	Needs, Before, Most resource.Quantity
}

// shorts are what a Workload wants and could never have by Kueue's own figures, each flavor once with the most that is wanted of it;
// none where one of them is no quantity.
func shorts(w *unstructured.Unstructured) []short {
	why, _ := queues.Why(w)
	var out []short
	for at, words := range beyondMost {
		for _, m := range words.FindAllStringSubmatch(why, -1) {
			s := short{Resource: m[1], Flavor: strings.TrimSuffix(m[2], ",")}
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
			out = s.amongst(out)
		}
	}
	return out
}

// amongst adds it to others, each flavor once with the most that is wanted of it.
func (s short) amongst(others []short) []short {
	had := slices.IndexFunc(others, func(o short) bool { return o.Resource == s.Resource && o.Flavor == s.Flavor })
	if had < 0 {
		return append(others, s)
	}
	if s.Needs.Cmp(others[had].Needs) > 0 {
		others[had] = s
	}
	return others
}

// moreNeeded are Kueue's words of what is unused of a flavor and too little (pkg/scheduler/flavorassigner).
var moreNeeded = regexp.MustCompile(`insufficient unused quota for (\S+) in flavor (\S+), ([0-9]\S*) more needed`)

// unused are what a Workload wants and what its ClusterQueue has, where the rest of that is in use: the quota that would
// do is Needs, for as long as others use what they do. None where a figure of either is not known.
func unused(q, w *unstructured.Unstructured) []short {
	why, _ := queues.Why(w)
	var out []short
	for _, m := range moreNeeded.FindAllStringSubmatch(why, -1) {
		has, known := nominal(q, m[2], m[1])
		more, err := resource.ParseQuantity(m[3])
		if err != nil || !known {
			return nil
		}
		s := short{Resource: m[1], Flavor: m[2], Needs: has.DeepCopy(), Most: has}
		s.Needs.Add(more)
		out = s.amongst(out)
	}
	return out
}

// CouldTake says whether its ClusterQueue could take a Workload that it never can as it is, if each pod asked so much, by
// Kueue's own figures: false where it does not say them, or not of one pod set.
func CouldTake(w *unstructured.Unstructured, asks corev1.ResourceList) bool {
	sets, _, err := unstructured.NestedSlice(w.Object, "spec", "podSets")
	all := shorts(w)
	if err != nil || len(sets) != 1 || len(all) == 0 {
		return false
	}
	set, _ := sets[0].(map[string]any) //nolint:errcheck // what is no set counts nothing
	return !slices.ContainsFunc(all, func(s short) bool {
		wants := asks[corev1.ResourceName(s.Resource)].DeepCopy()
		wants.Mul(int64(view.AsInt(set["count"])))
		wants.Add(s.Before)
		return wants.Cmp(s.Most) > 0
	})
}
