package admit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

// What a LimitRange gave a container is taken out of the range, and the pod is tried without it; what the pod
// asks for itself is left to it.
func TestWhatALimitRangeGaveIsTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		note string
		want string
	}{
		"given":            {"LimitRanger plugin set: nvidia.com/gpu limit for container main", "take nvidia.com/gpu out of the defaults of LimitRange r, which gives it to main"},
		"asked for itself": {"LimitRanger plugin set: cpu request for container main", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", GPUs: 1, MIGOff: []int{0}})
			w.Asking(list("nvidia.com/gpu", "1"))
			w.Wait.Annotations = map[string]string{"kubernetes.io/limit-ranger": tc.note}
			w.Wait.Spec.Containers[0].Name = "main"
			w.LimitRanges = []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: w.Wait.Namespace, Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
				Default: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
			ch, ok := Undefault(w.bench(t, "Deployment"), "nvidia.com/gpu")
			if ok != (tc.want != "") || ch.Title != tc.want {
				t.Fatalf("%q, %v; want %q", ch.Title, ok, tc.want)
			}
			if !ok {
				return
			}
			tried := w.Wait.DeepCopy()
			ch.Pod(tried)
			if got := tried.Spec.Containers[0].Resources; len(got.Limits)+len(got.Requests) != 0 || len(ch.Commands) != 2 {
				t.Errorf("tried with %v, by %q", got, ch.Commands)
			}
		})
	}
}
