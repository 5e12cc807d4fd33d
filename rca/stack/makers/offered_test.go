package makers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// Devices have other names where another maker made them than the one that is asked, or another plugin deals them out; what is no GPU has
// none, nor what is there in name alone.
func TestOtherNames(t *testing.T) {
	st := &cluster.State{}
	for i, has := range []corev1.ResourceList{
		{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("8"), "rdma/hca": resource.MustParse("1")},
		{"habana.ai/gaudi": resource.MustParse("8"), "amd.com/gpu": resource.MustParse("0")},
		{"volcano.sh/vgpu-number": resource.MustParse("10"), "gpu.intel.com/xe": resource.MustParse("1"), "habana.ai/gaudi": resource.MustParse("1")},
	} {
		st.Nodes = append(st.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}, Status: corev1.NodeStatus{Capacity: has}})
	}
	w := view.New(st)
	for name, want := range map[string]string{"n0": "[] [nvidia.com/gpu]", "n1": "[habana.ai/gaudi] [habana.ai/gaudi]", "n2": "[gpu.intel.com/xe habana.ai/gaudi volcano.sh/vgpu-number] [habana.ai/gaudi volcano.sh/vgpu-number]"} {
		if got := fmt.Sprint(Offered(w.Nodes[name], view.WholeGPU), Offered(w.Nodes[name], "gpu.intel.com/i915")); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := Instead(w, view.WholeGPU, "pod/p"); got != ", or let pod/p ask for what there is, if it can run on that: gpu.intel.com/xe habana.ai/gaudi volcano.sh/vgpu-number" {
		t.Error(got)
	}
	if got := Instead(w, "amd.com/gpu", "pod/p"); got != ", or let pod/p ask for what there is, if it can run on that: gpu.intel.com/xe habana.ai/gaudi nvidia.com/gpu volcano.sh/vgpu-number" {
		t.Error(got)
	}
	if got := Instead(view.New(&cluster.State{}), "amd.com/gpu", "pod/p"); got != "" {
		t.Error(got)
	}
}
