package causes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// What keeps a new node away comes first where only a new one will do: no node that there is would
// take the pod, with nobody on it either.
func TestWhereANewNodeIsTheWayOut(t *testing.T) {
	says := func(reason string) func(*world) {
		return func(w *world) {
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w", UID: "w"}, Reason: reason, Message: "said", ReportingController: "cluster-autoscaler", LastTimestamp: metav1.Time{Time: rcatest.Noon}})
		}
	}
	elsewhere := func(w *world) {
		w.Pods[0].Spec.NodeSelector = map[string]string{"pool": "new"}
	}
	for name, tc := range map[string]struct {
		fill []func(*world)
		want diagnosis.CauseID
	}{
		"a node of another pool": {[]func(*world){elsewhere, func(w *world) { w.gpuNode(l4("n1", 1)) }, says("TriggeredScaleUp")}, diagnosis.ScalingUp},
		"nobody brings one":      {[]func(*world){elsewhere, func(w *world) { w.gpuNode(l4("n1", 1)) }}, ""},
		"none would help":        {[]func(*world){elsewhere, func(w *world) { w.gpuNode(l4("n1", 1)) }, says("NotTriggerScaleUp")}, ""},
		"a node that is held":    {[]func(*world){func(w *world) { w.gpuNode(l4("n1", 1)); w.pod("h", "n1", "nvidia.com/gpu", 1) }, says("TriggeredScaleUp")}, ""},
		"too small, and one is held": {[]func(*world){func(w *world) {
			w.Pods[0].Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = list("x", "2")["x"]
		}, func(w *world) { w.gpuNode(l4("n1", 1)); w.gpuNode(l4("n2", 2)); w.pod("h", "n2", "nvidia.com/gpu", 1) }, says("TriggeredScaleUp")}, ""},
		"there is no node":                      {[]func(*world){says("TriggeredScaleUp")}, diagnosis.ScalingUp},
		"there is no node, and none would help": {[]func(*world){says("NotTriggerScaleUp")}, diagnosis.AutoscalerCannotHelp},
		"there is no node, and nobody says why": {nil, ""},
		"all of them are too small": {[]func(*world){func(w *world) {
			w.Pods[0].Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = list("x", "2")["x"]
		}, func(w *world) { w.gpuNode(l4("n1", 1)); w.gpuNode(l4("n2", 1)) }, says("TriggeredScaleUp")}, diagnosis.ScalingUp},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pod("w", "", "nvidia.com/gpu", 1)
			for _, fill := range tc.fill {
				fill(w)
			}
			c := w.open(t)
			c.Judge()
			if got := c.WayOut(); got != tc.want {
				t.Errorf("%q, want %q: %+v", got, tc.want, c.Judged)
			}
		})
	}
}

// A scheduler that knows of no card says what is so where every node with GPUs has a broken link,
// and there is one.
func TestCardsThatASchedulerDoesNotKnow(t *testing.T) {
	silent := func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		for _, list := range []corev1.ResourceList{n.Status.Allocatable, n.Status.Capacity} {
			for key := range list {
				if strings.HasPrefix(string(key), "nvidia.com/") {
					delete(list, key)
				}
			}
		}
	}
	cpu := func(w *world) { w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}}) }
	broken := func(w *world) { w.gpuNode(l4("n1", 1), silent) }
	whole := func(w *world) { w.gpuNode(l4("n2", 1)) }
	for name, tc := range map[string]struct {
		says string
		fill []func(*world)
		want bool
	}{
		"one broken node":        {"node unregistered", []func(*world){broken, cpu}, true},
		"another is whole":       {"node unregistered", []func(*world){broken, whole}, false},
		"no node has GPUs":       {"node unregistered", []func(*world){cpu}, false},
		"it says something else": {"no room", []func(*world){broken}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				p.Spec.SchedulerName, p.Status.Conditions[0].Message = "hami-scheduler", tc.says
			})
			for _, fill := range tc.fill {
				fill(w)
			}
			if got := w.open(t).unregistered(); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}
