package terms

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// GPUsOfMachine is how many whole GPUs the node's machine has by the sign that says the most, and that sign: what counts only what the
// driver finds says less where one is missing. 0 where nothing says how many.
func GPUsOfMachine(n *view.Node) (most int64, by diagnosis.Evidence) {
	for _, s := range n.Hardware() {
		if s.Count > most {
			most, by = s.Count, s.Evidence
		}
	}
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType} {
		if count := scaling.GPUsOf(n.Labels[key]); count > most {
			most, by = count, diagnosis.Fact(n.Ref(), fmt.Sprintf("label %s=%s, a type of machines that have more GPUs", key, n.Labels[key]), n.Labelled(key)...)
		}
	}
	return most, by
}
