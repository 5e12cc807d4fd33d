package cluster

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The dump of one namespace lacks only what waits elsewhere.
func TestIn(t *testing.T) {
	pod := func(namespace, name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	}
	s := &State{Pods: []*corev1.Pod{pod("ml", "waits", ""), pod("other", "waits", ""), pod("other", "runs", "gpu-1")},
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}}}, Unread: map[string]string{"Event": "the right to list events is missing"}}
	if s.In("") != s {
		t.Error("all namespaces: another state")
	}
	got := s.In("ml")
	if len(got.Pods) != 2 || got.Pods[0].Name != "waits" || got.Pods[1].Name != "runs" || len(got.Nodes) != 1 || !maps.Equal(got.Unread, s.Unread) {
		t.Errorf("pods %v, nodes %v", got.Pods, got.Nodes)
	}
	if len(s.Pods) != 3 {
		t.Errorf("the state itself has %d pods now", len(s.Pods))
	}
}
