package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

// Which labels are asked for in vain, and what comes nearest.
func TestSelectors(t *testing.T) {
	affinity := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	expr := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	labels := func(name string, l map[string]string) sim.Node { return sim.Node{Name: name, Model: "L4", Labels: l} }
	selector := func(l map[string]string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeSelector = l } }
	rows{
		"a selector, with the nearest of all values": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"model": "A100-40"}))
			w.gpuNode(labels("n2", map[string]string{"model": "b200", "zone": "a"}))
			w.pod("w", "", "nvidia.com/gpu", 1, selector(map[string]string{"zone": "b", "model": "a100_80gb", "absent": "x"}))
		}, `
NodeSelectorMismatch proven n1,n2: selector absent=x, model=a100_80gb (nearest: "A100-40"), zone=b (nearest: "a") does not match
  Node/n1: label absent is absent, x was asked
  Node/n1: label model is "A100-40", a100_80gb was asked
  Node/n1: label zone is absent, b was asked
  Node/n2: label absent is absent, x was asked
  Node/n2: label model is "b200", a100_80gb was asked
  Node/n2: label zone is "a", b was asked
`},
		"an affinity by each operator": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"memory": "40", "kind": "old", "big": "yes"}))
			w.gpuNode(labels("n2", map[string]string{"memory": "24", "kind": "old", "big": "no"}))
			all := corev1.NodeSelectorTerm{}
			for _, e := range []corev1.NodeSelectorTerm{expr("memory", corev1.NodeSelectorOpGt, "60"), expr("memory", corev1.NodeSelectorOpLt, "20"), expr("kind", corev1.NodeSelectorOpNotIn, "old"), expr("big", corev1.NodeSelectorOpDoesNotExist), expr("small", corev1.NodeSelectorOpExists)} {
				all.MatchExpressions = append(all.MatchExpressions, e.MatchExpressions...)
			}
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(all))
		}, `
NodeSelectorMismatch proven n1,n2: selector memory>60 (nearest: "40"), memory<20 (nearest: "24"), kind!=old, no big, small=any value does not match
  Node/n1: label memory is "40", more than 60 was asked
  Node/n1: label memory is "40", less than 20 was asked
  Node/n1: label kind is "old", not old was asked
  Node/n1: label big is "yes", none was asked
  Node/n1: label small is absent, any value was asked
  Node/n2: label memory is "24", more than 60 was asked
  Node/n2: label memory is "24", less than 20 was asked
  Node/n2: label kind is "old", not old was asked
  Node/n2: label big is "no", none was asked
  Node/n2: label small is absent, any value was asked
`},
		"of alternatives the one that comes nearest": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"a": "1"}))
			two := expr("b", corev1.NodeSelectorOpExists)
			two.MatchExpressions = append(two.MatchExpressions, expr("c", corev1.NodeSelectorOpExists).MatchExpressions...)
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(corev1.NodeSelectorTerm{}, two, expr("a", corev1.NodeSelectorOpIn, "2", "3")))
		}, `
NodeSelectorMismatch proven n1: selector a=2|3 (nearest: "1") does not match, nor its alternatives
  Node/n1: label a is "1", 2|3 was asked
`},
		"a selector beside an affinity with alternatives": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"a": "1"}))
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(expr("a", corev1.NodeSelectorOpIn, "1"), expr("a", corev1.NodeSelectorOpIn, "2")), selector(map[string]string{"b": "1"}))
		}, `
NodeSelectorMismatch proven n1: selector b=1 does not match
  Node/n1: label b is absent, 1 was asked
`},
		"nodes by their names": {func(w *world) {
			w.gpuNode(labels("n1", nil))
			w.gpuNode(labels("n2", nil))
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n3"}}}}))
		}, `
NodeSelectorMismatch proven n1,n2: selector metadata.name=n3 does not match
  Node/n1: label metadata.name is "n1", n3 was asked
  Node/n2: label metadata.name is "n2", n3 was asked
`},
		"terms that match nothing": {func(w *world) {
			w.gpuNode(labels("n1", nil))
			w.pod("w", "", "nvidia.com/gpu", 1, affinity(corev1.NodeSelectorTerm{}))
		}, `
NodeSelectorMismatch proven n1: node affinity does not match
  Node/n1: the required node affinity does not match its labels
`},
		"nodes that are alike are told alike, and each for itself": {func(w *world) {
			w.gpuNode(labels("n1", map[string]string{"zone": "a"}))
			w.gpuNode(labels("n2", map[string]string{"zone": "a"}))
			w.gpuNode(labels("n3", nil))
			w.pod("w", "", "nvidia.com/gpu", 1, selector(map[string]string{"zone": "ab"}))
		}, `
NodeSelectorMismatch proven n1,n2,n3: selector zone=ab (nearest: "a") does not match
  Node/n1: label zone is "a", ab was asked
  Node/n2: label zone is "a", ab was asked
  Node/n3: label zone is absent, ab was asked
`},
	}.run(t)
}
