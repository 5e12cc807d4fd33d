package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/edit/edittest"
)

// Of labels that Kueue has chosen for the pod the choice is made again; of others the selector is changed.
func TestKueuesChoiceOfAPlace(t *testing.T) {
	const again = "by hand, low risk: have Kueue choose its place again: it has chosen kubernetes.io/hostname=m"
	for name, tc := range map[string]struct {
		levels []any
		want   string
	}{
		"by name":    {[]any{"kubernetes.io/hostname"}, again},
		"by another": {[]any{"rack"}, "by plan, medium risk: select kubernetes.io/hostname=n in pod/w"},
		"by none":    {nil, "by plan, medium risk: select kubernetes.io/hostname=n in pod/w"},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"kubernetes.io/hostname": "n"}})
		w.AddNode(sim.Node{Name: "m", Labels: map[string]string{"kubernetes.io/hostname": "m"}})
		w.Wait.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "m"}
		w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		w.QueuedWorkloads = append(w.QueuedWorkloads, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "wl"},
			"status": map[string]any{"admission": map[string]any{"podSetAssignments": []any{map[string]any{"name": "main", "topologyAssignment": map[string]any{"levels": tc.levels}}}}}}})
		c := w.bench(t, "Pod")
		if got := edittest.ToldAll(c.fixSelector(c.Node("n"))); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Kueue has chosen a place in vain where a node with GPUs that the pod could be on, and tolerates, is elsewhere.
func TestMisplaced(t *testing.T) {
	tainted := func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, tc := range map[string]struct {
		zone  string // of the other node; the pod is to be in z
		edits []func(*corev1.Node, *nodeprobe.NodeGeometry)
		want  bool
	}{
		"another would do": {"z", nil, true},
		"it is tainted":    {"z", []func(*corev1.Node, *nodeprobe.NodeGeometry){tainted}, false},
		"it is elsewhere":  {"y", nil, false},
		"it has no GPU": {"z", []func(*corev1.Node, *nodeprobe.NodeGeometry){func(n *corev1.Node, g *nodeprobe.NodeGeometry) {
			g.Report.GPUs = nil
			n.Labels, n.Status.Allocatable, n.Status.Capacity = map[string]string{"zone": "z", "rack": "n"}, nil, nil
		}}, false},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"rack": "n", "zone": tc.zone}}, tc.edits...)
		w.AddNode(sim.Node{Name: "m", Labels: map[string]string{"rack": "m", "zone": "z"}}, tainted)
		w.Wait.Spec.NodeSelector = map[string]string{"rack": "m", "zone": "z"}
		w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		w.QueuedWorkloads = append(w.QueuedWorkloads, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "wl"},
			"status": map[string]any{"admission": map[string]any{"podSetAssignments": []any{map[string]any{"name": "main", "topologyAssignment": map[string]any{"levels": []any{"rack"}}}}}}}})
		if got := misplaced(w.bench(t, "Pod")); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
