package queues

import (
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/view"
)

// beyondAll are Kueue's words of what is more than a flavor could ever give (kueue, pkg/scheduler/flavorassigner): what pod
// sets before take of it, what this one asks, and what there is at most.
var beyondAll = regexp.MustCompile(`insufficient quota for (\S+) in flavor \S+, previously considered podsets requests \((\d+)\) \+ current podset request \((\d+)\) > maximum capacity \((\d+)\)`)

// CouldTake says whether its ClusterQueue could take a Workload that it never can as it is, if each pod asked so much, by
// Kueue's own figures: false where it does not say them of whole devices, or of one pod set.
func CouldTake(w *unstructured.Unstructured, asks corev1.ResourceList) bool {
	sets := nested(w, "spec", "podSets")
	why, _ := Why(w)
	all := beyondAll.FindAllStringSubmatch(why, -1)
	if len(sets) != 1 || len(all) == 0 {
		return false
	}
	for _, m := range all {
		asked := asks[corev1.ResourceName(m[1])]
		before, _ := strconv.ParseInt(m[2], 10, 64)
		most, _ := strconv.ParseInt(m[4], 10, 64)
		if before+asked.Value()*int64(view.AsInt(sets[0]["count"])) > most {
			return false
		}
	}
	return true
}
