package queues

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
)

// Pods that a scheduler's words name are those that exist: not the pod itself, not one that is
// gone, and not what only looks like a name.
func TestWordsNamePods(t *testing.T) {
	for message, want := range map[string][]string{
		"failed waiting for GPU reservation pod to allocate: kai/reservation-1":      {"kai/reservation-1"},
		"Failed to bind pod a/w to node n1: waiting for pod kai/reservation-1.":      {"kai/reservation-1"},
		"kai/reservation-1 and kai/reservation-2, then kai/reservation-1 once more":  {"kai/reservation-1", "kai/reservation-2"},
		"a/other and kai/w wait for a/w":                                             {"a/other", "kai/w"},
		"3/4 nodes are unavailable: kai/gone, nvidia.com/gpu, https://example.com/x": nil,
	} {
		c := open(t, func(w *rcatest.World) {
			w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}})
			for _, name := range []string{"reservation-1", "reservation-2", "w"} {
				w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kai", Name: name}})
			}
		})
		var got []string
		for _, p := range c.Named(Word{message: message}) {
			got = append(got, p.Namespace+"/"+p.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
