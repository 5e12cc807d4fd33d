package incident

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that holds room for others is waited for by nobody while one of them waits, and by their application else.
func TestStandIns(t *testing.T) {
	pod := func(name, app string, standIn bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{"yunikorn.apache.org/app-id": app}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		if standIn {
			p.Labels[standInLabel] = "true"
		}
		return p
	}
	running := pod("r", "b", false)
	running.Status.Phase = corev1.PodRunning
	of := stoodFor([]*corev1.Pod{pod("m", "a", false), running})
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a member":                                    {pod("m", "a", false), false},
		"one in a waiting member's place":             {pod("p", "a", true), true},
		"one whose application waits for nobody else": {pod("p", "b", true), false},
		"one of no application":                       {pod("p", "", true), false},
	} {
		if got := of(tc.pod); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
