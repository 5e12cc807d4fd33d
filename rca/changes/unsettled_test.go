package changes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A GPU that is asked by a name which is nearly its own is asked by that; which of two other names is meant only a person
// knows, and GPUs of a maker's that nobody announces want its device plugin.
func TestResourcesThatNoNodeOffers(t *testing.T) {
	for asked, want := range map[corev1.ResourceName]string{
		"nvidia.com/gpus":                "ChangeRequest ask nvidia.com/gpu instead of nvidia.com/gpus in deployment/w",
		"alpha.kubernetes.io/nvidia-gpu": "ChangeRequest ask nvidia.com/gpu instead of alpha.kubernetes.io/nvidia-gpu in deployment/w",
		"amd.com/gpu":                    "Manual install AMD's device plugin, which announces amd.com/gpu, where a machine has such a GPU, or let deployment/w ask for what there is, if it can run on that: nvidia.com/gpu",
		"example.com/fpga":               "Manual have nodes offer example.com/fpga, by the device plugin that announces it, or the pod ask for what they offer",
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
		w.Wait.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{asked: resource.MustParse("1")}, Limits: corev1.ResourceList{asked: resource.MustParse("1")}}
		c := w.bench(t, "Deployment")
		c.Judge()
		all := c.OfPod(diagnosis.Unknown)
		if len(all) == 0 || string(all[0].Kind)+" "+all[0].Title != want {
			t.Errorf("%s: %+v, want %s", asked, all, want)
			continue
		}
		if two := strings.HasPrefix(want, "ChangeRequest"); two != (len(all) == 2) || two && all[1].Kind != diagnosis.Manual {
			t.Errorf("%s: %d changes", asked, len(all))
		}
	}
}
