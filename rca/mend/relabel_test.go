package mend

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// Only a pod that was judged by the label, and runs, shows that the node had it; an empty value is a value, and no label is none.
func TestRelabel(t *testing.T) {
	running := corev1.PodStatus{Phase: corev1.PodRunning}
	of := func(kind string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: &yes}}
	}
	for name, k := range map[string]struct {
		key, value string
		pod        corev1.Pod
		back       bool
	}{
		"it selects it, too":    {"team", "a", corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "a"}}, Status: running}, true},
		"another value":         {"team", "a", corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "b"}}, Status: running}, false},
		"none for an empty one": {"team", "", corev1.Pod{Status: running}, false},
		"it has ended":          {"team", "a", corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "a"}}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}, false},
		"a DaemonSet's":         {"team", "a", corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: of("DaemonSet")}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "a"}}, Status: running}, false},
		"a static pod":          {"team", "a", corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: of("Node")}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": "a"}}, Status: running}, false},
		"discovery writes it":   {"nvidia.com/gpu.product", "a", corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"nvidia.com/gpu.product": "a"}}, Status: running}, false},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, Pods: []*corev1.Pod{&k.pod}}
		missed := []terms.MissedLabel{{Key: k.key, InSelector: true, NodeSelectorRequirement: corev1.NodeSelectorRequirement{Values: []string{k.value}}}}
		otherwise := []edit.Change{{Kind: diagnosis.FixSelector, Risk: diagnosis.LowRisk}}
		got := Relabel(n, missed, otherwise)
		if !k.back {
			if len(got) != 1 || got[0].Settles || got[0].Risk != diagnosis.LowRisk {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 2 || !got[1].Settles || got[1].Risk != diagnosis.MediumRisk || otherwise[0].Settles {
			t.Fatalf("%s: %+v", name, got)
		}
		node := n.DeepCopy()
		if got[0].Node(node); node.Labels[k.key] != k.value || len(n.Labels) != 0 {
			t.Errorf("%s: %v, and the node itself has %v", name, node.Labels, n.Labels)
		}
	}
}
