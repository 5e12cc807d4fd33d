package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a LimitRange has given is what the API server has noted on the pod, where a range still gives it.
func TestWhatALimitRangeGives(t *testing.T) {
	const note = "LimitRanger plugin set: cpu, nvidia.com/gpu request for container proxy; nvidia.com/gpu limit for container proxy; nvidia.com/gpu limit for init container setup; cpu request for container main"
	gives := func(namespace string, of corev1.LimitType, name corev1.ResourceName) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: of, Default: corev1.ResourceList{name: resource.MustParse("8")}}}}}
	}
	for name, tc := range map[string]struct {
		note string
		r    *corev1.LimitRange
		want string
	}{
		"two containers":      {note, gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), "proxy setup"},
		"nothing is noted":    {"", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
		"the range is gone":   {note, gives("b", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
		"it is of pods":       {note, gives("a", corev1.LimitTypePod, "nvidia.com/gpu"), ""},
		"it gives other":      {note, gives("a", corev1.LimitTypeContainer, "cpu"), ""},
		"nobody was given it": {"LimitRanger plugin set: cpu request for container main", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", Annotations: map[string]string{noteOfRange: tc.note}}}
		got := ""
		if g := GivenBy([]*corev1.LimitRange{tc.r}, pod, "nvidia.com/gpu"); g != nil {
			got = strings.Join(g.Containers, " ")
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
