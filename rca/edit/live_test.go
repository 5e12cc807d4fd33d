package edit

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A pod that is changed where it stands keeps what admission gave it.
func TestLivePodsKeepTheirTolerations(t *testing.T) {
	own, add := corev1.Toleration{Key: "own"}, corev1.Toleration{Key: "add"}
	p := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{own}}}
	got := livePatch(p, map[string]any{"tolerations": []corev1.Toleration{own, add}})
	if fmt.Sprint(got) != fmt.Sprint(map[string]any{"tolerations": []corev1.Toleration{own, add}}) || len(p.Spec.Tolerations) != 1 {
		t.Errorf("%v", got)
	}
	other := map[string]any{"schedulerName": "x"}
	if got := livePatch(p, other); fmt.Sprint(got) != fmt.Sprint(other) {
		t.Errorf("%v", got)
	}
}
