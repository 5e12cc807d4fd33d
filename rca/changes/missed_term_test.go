package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/terms"
)

// Every operator is met as the scheduler's own code says, and what a requirement is
// loosened to is met by the node that it was loosened for.
func TestRequirementsAreMetAsTheSchedulerSays(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"number": "40960", "word": "a100"}}}
	accepts := func(e corev1.NodeSelectorRequirement, byName bool) bool {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{e}}
		if byName {
			term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{e}}
		}
		s, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
		return err == nil && s.Match(n)
	}
	check := func(key string, op corev1.NodeSelectorOperator, byName bool, values ...string) {
		e := corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
		m := terms.MissedLabel{NodeSelectorRequirement: e, Key: key, ByName: byName}
		if got, want := m.Met(n), accepts(e, byName); got != want {
			t.Errorf("%s %s %v: %v, want %v", key, op, values, got, want)
		}
		if m.Met(n) {
			return
		}
		if e.Values = loosened(m, n); len(e.Values) > 0 && !accepts(e, byName) {
			t.Errorf("%s %s %v: loosened to %v, which is not met", key, op, values, e.Values)
		}
	}
	for _, key := range []string{"number", "word", "absent"} {
		for _, value := range []string{"40960", "40959", "40961", "80000", "a100", "h100"} {
			for _, op := range []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt} {
				check(key, op, false, value)
			}
			check(key, corev1.NodeSelectorOpIn, false, value, "other")
			check(key, corev1.NodeSelectorOpNotIn, false, value, "a100")
		}
		check(key, corev1.NodeSelectorOpExists, false)
		check(key, corev1.NodeSelectorOpDoesNotExist, false)
	}
	for _, name := range []string{"gpu-1", "gpu-2"} {
		check("metadata.name", corev1.NodeSelectorOpIn, true, name)
		check("metadata.name", corev1.NodeSelectorOpNotIn, true, name)
	}
}
