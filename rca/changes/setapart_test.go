package changes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// To tolerate what sets nodes apart for others is left to a person where the pod could be elsewhere: nodes of
// the cluster's add-ons, the control plane's, nodes with GPUs for a pod that asks for none.
func TestNodesForOthers(t *testing.T) {
	const owner = ": whether it may be there only their owner knows"
	gpus := "nodes with taint team have GPUs, and it asks for none" + owner
	const addons = "nodes with taint CriticalAddonsOnly are for the cluster's own add-ons: whether this may be there only their owner knows"
	const control = "nodes with taint node-role.kubernetes.io/control-plane are for the control plane: whether this may be there only their owner knows"
	type place struct {
		key    string
		gpu    bool
		labels map[string]string
	}
	for name, tc := range map[string]struct {
		nodes []place // the first is asked for
		fill  func(*world)
		want  string
	}{
		"add-ons":                         {[]place{{key: "CriticalAddonsOnly"}, {}}, nil, addons},
		"add-ons, and no other node":      {[]place{{key: "CriticalAddonsOnly"}}, nil, ""},
		"add-ons, and none that it takes": {[]place{{key: "CriticalAddonsOnly", labels: map[string]string{"a": "b"}}, {}}, func(w *world) { w.Wait.Spec.NodeSelector = map[string]string{"a": "b"} }, ""},
		"an add-on": {[]place{{key: "CriticalAddonsOnly"}, {}}, func(w *world) {
			p := int32(view.SystemCritical)
			w.Wait.Spec.Priority = &p
		}, ""},
		"nearly an add-on": {[]place{{key: "CriticalAddonsOnly"}, {}}, func(w *world) {
			p := int32(view.SystemCritical - 1)
			w.Wait.Spec.Priority = &p
		}, addons},
		"the control plane":                    {[]place{{key: "node-role.kubernetes.io/control-plane"}, {}}, nil, control},
		"the control plane, with a GPU":        {[]place{{key: "node-role.kubernetes.io/control-plane", gpu: true}, {}}, func(w *world) { w.Asking(rcatest.List("nvidia.com/gpu", "1")) }, control},
		"the control plane, and no other node": {[]place{{key: "node-role.kubernetes.io/control-plane"}}, nil, ""},
		"another role":                         {[]place{{key: "node-role.kubernetes.io/training"}, {}}, nil, ""},
		"another taint":                        {[]place{{key: "team"}, {}}, nil, ""},
		"nodes with GPUs":                      {[]place{{key: "team", gpu: true}, {}}, nil, gpus},
		"and one without":                      {[]place{{key: "team", gpu: true}, {key: "team"}, {}}, nil, ""},
		"a pod that asks for one":              {[]place{{key: "team", gpu: true}, {}}, func(w *world) { w.Asking(rcatest.List("nvidia.com/gpu", "1")) }, ""},
		"a pod with a claim":                   {[]place{{key: "team", gpu: true}, {}}, func(w *world) { w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }, ""},
		"nodes with GPUs, and no other":        {[]place{{key: "team", gpu: true}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(rcatest.List("cpu", "1"))
			for i, p := range tc.nodes {
				n := string(rune('a' + i))
				if p.gpu {
					w.AddNode(sim.Node{Name: n, MIGOff: []int{0}})
				} else {
					w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: p.labels}})
				}
				if p.key != "" {
					w.Nodes[i].Spec.Taints = []corev1.Taint{{Key: p.key, Value: "x", Effect: corev1.TaintEffectNoSchedule}}
				}
			}
			if tc.fill != nil {
				tc.fill(w)
			}
			c := w.bench(t, "Deployment")
			got := c.addToleration(c.Node("a"))
			if len(got) != 1 || got[0].Untestable != tc.want || tc.want != "" && !got[0].Manual || !strings.HasPrefix(got[0].Title, "tolerate "+tc.nodes[0].key) {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}
