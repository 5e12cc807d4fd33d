package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

// A node is given up whose machine Karpenter does not take for its own; one that is waited for is not.
func TestNodesThatAreGivenUp(t *testing.T) {
	for name, k := range map[string]struct{ node, machine, registered, want string }{
		"not its own":       {"aws:///a/i-1", "aws:///a/i-1", "False", "k"},
		"waited for":        {"aws:///a/i-1", "aws:///a/i-1", "Unknown", ""},
		"its own":           {"aws:///a/i-1", "aws:///a/i-1", "True", ""},
		"another machine":   {"aws:///a/i-1", "aws:///a/i-2", "False", ""},
		"of no provider id": {"", "", "False", ""},
	} {
		st := &cluster.State{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: k.node}}},
			NodeClaims: []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "k"}, "status": map[string]any{"providerID": k.machine, "conditions": []any{map[string]any{"type": "Registered", "status": k.registered}}}}}}}
		w, done, err := Open(t.Context(), st, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.GivenUp("n"); got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
		if w.GivenUp("other") != "" {
			t.Error("a node that is not there")
		}
		done()
	}
}
