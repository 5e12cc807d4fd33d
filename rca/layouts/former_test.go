package layouts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// Whole GPUs are of a former layout where they and the instances are of more GPUs than there are, and where GPU feature
// discovery counts those instances too. Where nothing tells how many there are, a name at 0 makes them doubtful.
func TestWholeGPUsOfAFormerLayout(t *testing.T) {
	type list = corev1.ResourceList
	const label, doubt = "nvidia.com/mig-1g.5gb.count", "nothing tells how many GPUs n has: it was laid out otherwise before, for it keeps nvidia.com/mig-2g.10gb at 0, and so its nvidia.com/gpu=2 beside MIG instances may be of then"
	of := func(kv ...string) map[string]string {
		out := map[string]string{view.LabelMIGStrategy: "mixed", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i]] = kv[i+1]
		}
		return out
	}
	for name, tc := range map[string]struct {
		labels   map[string]string
		has      list
		says, by string
	}{
		"as many as the instances are on":   {of(view.LabelGPUCount, "2", label, "14"), rcatest.List("nvidia.com/gpu", "2", mig1, "14"), "its nvidia.com/gpu=2 is of a former layout, for it has 2 GPUs, and on them are 14 of 1g.5gb", ""},
		"one is left for the instances":     {of(view.LabelGPUCount, "3", label, "7"), rcatest.List("nvidia.com/gpu", "2", mig1, "7"), "", ""},
		"they take two at least":            {of(view.LabelGPUCount, "3", label, "8"), rcatest.List("nvidia.com/gpu", "2", mig1, "8"), "its nvidia.com/gpu=2 is of a former layout, for it has 3 GPUs, and on them are 8 of 1g.5gb", ""},
		"other instances are counted there": {of(view.LabelGPUCount, "2", label, "7"), rcatest.List("nvidia.com/gpu", "2", mig1, "14"), "", ""},
		"each is shared":                    {of(view.LabelGPUCount, "2", label, "14", mig1+".replicas", "2"), rcatest.List("nvidia.com/gpu", "2", mig1, "14"), "", ""},
		"nothing counts the GPUs":           {of(), rcatest.List("nvidia.com/gpu", "2", mig1, "14", mig2, "0"), "", doubt},
		"and no name is left at 0":          {of(), rcatest.List("nvidia.com/gpu", "2", mig1, "14"), "", ""},
		"and there are no instances":        {of(), rcatest.List("nvidia.com/gpu", "2", mig2, "0"), "", ""},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: tc.labels}, Status: corev1.NodeStatus{Allocatable: tc.has, Capacity: tc.has}}}
		says := ""
		if f := FormerWhole(n); f != nil {
			says = f.Says
		}
		if WholeDoubt(n, mig1) != "" || says != tc.says || WholeDoubt(n, view.WholeGPU) != tc.by {
			t.Errorf("%s: %q, %q", name, says, WholeDoubt(n, view.WholeGPU))
		}
	}
}
