package devices

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
)

// A claim is of one node where its allocation names just one that there is.
func TestAClaimOfOneNode(t *testing.T) {
	of := func(nodes ...string) *resourcev1.AllocationResult {
		in := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: nodes}
		terms := []corev1.NodeSelectorTerm{}
		for _, n := range nodes {
			in.Values = []string{n}
			terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in}})
		}
		return &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	w := &view.Cluster{Nodes: map[string]*view.Node{}, State: &cluster.State{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}}
	for _, n := range w.State.Nodes {
		w.Nodes[n.Name] = &view.Node{Node: n}
	}
	for name, tc := range map[string]struct {
		is   *resourcev1.AllocationResult
		want string
	}{
		"of one":             {of("b"), "b"},
		"of two":             {of("a", "b"), ""},
		"of one that went":   {of("c"), ""},
		"of all":             {&resourcev1.AllocationResult{}, ""},
		"not allocated yet":  {nil, ""},
		"of what is no node": {of("-"), ""},
	} {
		v := &Claims{asker: (&evict.Ledger{Cluster: w}).ForPod(&corev1.Pod{}), Own: []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "c"}, Status: resourcev1.ResourceClaimStatus{Allocation: tc.is}}}}
		got := ""
		if p := v.Pinned(); p != nil {
			got = p.Node
			if p.Text() != "ResourceClaim c is allocated to devices of b, and so for no other node" || p.Evidence("a")[0].Ref != "ResourceClaim/ml/c" {
				t.Errorf("%s: %s", name, p.Text())
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if (*Claims)(nil).Pinned() != nil {
		t.Error("a pod without claims")
	}
}
