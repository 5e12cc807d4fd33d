package makers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/view"
)

// GPUs of a maker go by another name where they are parted, or another driver serves them; what
// stands beside them is none.
func TestOtherNamesOfGPUs(t *testing.T) {
	for _, k := range []struct{ asked, offered, want corev1.ResourceName }{
		{"amd.com/gpu", "amd.com/cpx_nps4", "amd.com/cpx_nps4"},
		{"amd.com/spx_nps1", "amd.com/gpu", "amd.com/gpu"},
		{"amd.com/gpu", "amd.com/gpu", ""},
		{"amd.com/gpu", "amd.com/other", ""},
		{"amd.com/other", "amd.com/gpu", ""},
		{"gpu.intel.com/i915", "gpu.intel.com/xe", "gpu.intel.com/xe"},
		{"gpu.intel.com/i915", "gpu.intel.com/i915_monitoring", ""},
		{"nvidia.com/gpu", "nvidia.com/GA102GL_A10", ""},
		{"nvidia.com/GA102GL_A10", "nvidia.com/GA102GL_A40", ""},
	} {
		n := &view.Node{Node: &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{k.offered: resource.MustParse("2")}}}}
		if got := OtherName(n, k.asked); got != k.want {
			t.Errorf("%s, offered %s: %q, want %q", k.asked, k.offered, got, k.want)
		}
		n.Status.Allocatable[k.offered] = resource.MustParse("0")
		if got := OtherName(n, k.asked); got != "" {
			t.Errorf("none of it is offered: %q", got)
		}
	}
}

// Neuron's plugin announces devices, and their cores beside them: a node that offers one of the names has nothing broken for another.
// A machine says by its type that it has some.
func TestWhatOthersOffer(t *testing.T) {
	n := &view.Node{Node: &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"aws.amazon.com/neuroncore": resource.MustParse("2")}}}}
	for asked, want := range map[corev1.ResourceName]bool{"aws.amazon.com/neurondevice": true, "aws.amazon.com/neuroncore": false, "amd.com/gpu": false} {
		if got := Of(asked).Offers(n, asked); got != want {
			t.Errorf("%s: %t, want %t", asked, got, want)
		}
	}
	for machine, want := range map[string]corev1.ResourceName{"inf1.xlarge": "aws.amazon.com/neuron", "trn1n.32xlarge": "aws.amazon.com/neuroncore", "trn2.48xlarge": "aws.amazon.com/neuron",
		"dl1.24xlarge": "habana.ai/gaudi", "dl2q.24xlarge": "", "g4ad.xlarge": "amd.com/gpu", "g5.xlarge": ""} {
		n.Labels = map[string]string{corev1.LabelInstanceTypeStable: machine}
		for _, asked := range []corev1.ResourceName{"aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi", "amd.com/gpu", "gpu.intel.com/xe"} {
			signed, of := Of(asked).Sign(n), want != "" && Of(want) == Of(asked)
			if (signed != "") != of {
				t.Errorf("%s of %s: sign %q, want %t", asked, machine, signed, of)
			}
		}
	}
	if m := Of("example.com/fpga"); m != nil {
		t.Errorf("%+v announces what nobody does", m)
	}
}
