package queues

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// That a container asks shares of more cards than any node has is told by what the device plugin of its scheduler writes.
func TestTooManyCards(t *testing.T) {
	const old = "GPU-a,10,24564,100,NVIDIA-RTX,0,true:GPU-b,10,24564,100,NVIDIA-RTX,0,true:"
	for name, tc := range map[string]struct {
		scheduler, key, register string
		asks                     map[corev1.ResourceName]string
		want                     string
	}{
		"as JSON":              {"hami-scheduler", "hami.io/node-nvidia-register", `[{"id":"GPU-a","count":10}]`, map[corev1.ResourceName]string{view.WholeGPU: "2"}, "container c asks shares of 2 cards, and no node has as many"},
		"with colons":          {"hami-scheduler", "hami.io/node-nvidia-register", old, map[corev1.ResourceName]string{view.WholeGPU: "3"}, "container c asks shares of 3 cards, and no node has as many"},
		"as many as there are": {"hami-scheduler", "hami.io/node-nvidia-register", old, map[corev1.ResourceName]string{view.WholeGPU: "2"}, ""},
		"Volcano's":            {"volcano", "volcano.sh/node-vgpu-register", old, map[corev1.ResourceName]string{vgpus: "4"}, "container c asks shares of 4 cards, and no node has as many"},
		"whole ones":           {"volcano", "volcano.sh/node-vgpu-register", old, map[corev1.ResourceName]string{view.WholeGPU: "4"}, ""},
		"nothing is written":   {"hami-scheduler", "hami.io/node-nvidia-register", "", map[corev1.ResourceName]string{view.WholeGPU: "2"}, ""},
		"another decides":      {"default-scheduler", "hami.io/node-nvidia-register", old, map[corev1.ResourceName]string{view.WholeGPU: "3"}, ""},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{tc.key: tc.register}}}
		limits := corev1.ResourceList{}
		for name, q := range tc.asks {
			limits[name] = resource.MustParse(q)
		}
		p := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: tc.scheduler, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
		c := &Case{Cluster: view.New(&cluster.State{Nodes: []*corev1.Node{n}}), Pod: p}
		got := ""
		if k := TooManyCards(c); k != nil {
			got = k.Says()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
