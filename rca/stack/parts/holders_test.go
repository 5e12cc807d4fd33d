package parts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The drain of a driver's upgrade passes pods by that have a label for that, and no others.
func TestWhoIsNotDrained(t *testing.T) {
	pod := func(name, skip string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{drainSkip: skip}}}
	}
	got := Undrained([]*corev1.Pod{pod("a", "false"), pod("b", "true"), pod("c", "")})
	const want = "label nvidia.com/gpu-driver-upgrade-drain.skip=true; the upgrade's drain leaves it where it is"
	if len(got) != 1 || got[0].Ref != "Pod/ml/b" || got[0].Fact != want {
		t.Errorf("%+v", got)
	}
}
