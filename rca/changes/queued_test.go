package changes

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// workload is one of Kueue's that stands for pods, admitted, and of a priority.
func workload(name string, priority int64, pods ...string) *unstructured.Unstructured {
	owners := []any{}
	for _, p := range pods {
		owners = append(owners, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": p, "uid": p})
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": name, "ownerReferences": owners},
		"spec": map[string]any{"priority": priority}, "status": map[string]any{"admission": map[string]any{"clusterQueue": "q"}}}}
}

// Of two Workloads of the same queue that are both admitted the one of lower priority is stopped,
// where that gives the node enough: the lowest, and all its pods that run.
func TestKueueStopsTheLowest(t *testing.T) {
	for name, tc := range map[string]struct {
		asks string
		edit func(*world)
		want string // of the Workload and its pods; empty: none is
	}{
		"the lowest":    {"1", func(*world) {}, "low: low-0 low-1"},
		"that gives up": {"3", func(*world) {}, ""},
		"two of it":     {"2", func(*world) {}, "low: low-0 low-1"},
		"none below": {"1", func(w *world) {
			w.QueuedWorkloads[0] = workload("mine", 1, "w")
		}, ""},
		"the one below": {"1", func(w *world) {
			w.QueuedWorkloads[1] = workload("low", 10, "low-0", "low-1", "low-2", "low-3")
		}, "mid: mid-0"},
		"itself not queued":  {"1", func(w *world) { w.QueuedWorkloads = w.QueuedWorkloads[1:] }, ""},
		"not yet admitted":   {"1", func(w *world) { delete(w.QueuedWorkloads[0].Object, "status") }, ""},
		"others not queued":  {"1", func(w *world) { w.QueuedWorkloads = w.QueuedWorkloads[:1] }, ""},
		"the smaller of two": {"1", func(w *world) { w.QueuedWorkloads[2] = workload("mid", 1, "mid-0") }, "mid: mid-0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", GPUs: 3, MIGOff: []int{0, 1, 2}})
			w.AddNode(sim.Node{Name: "m", GPUs: 3, MIGOff: []int{0, 1, 2}})
			w.AddHolder("low-0", "n", "nvidia.com/gpu", 0)
			w.AddHolder("low-1", "n", "nvidia.com/gpu", 1)
			w.AddHolder("mid-0", "n", "nvidia.com/gpu", 2)
			for pod, edit := range map[string]func(*corev1.Pod){
				"low-2": func(p *corev1.Pod) { p.Spec.NodeName = "" },
				"low-3": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} },
				"low-4": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
			} {
				p := rcatest.Victim(pod, 0, 1, time.Hour, pod)
				p.Namespace, p.Spec.NodeName = "a", "m"
				edit(p)
				w.Pods = append(w.Pods, p)
			}
			w.QueuedWorkloads = []*unstructured.Unstructured{workload("mine", 10, "w"), workload("low", 1, "low-0", "low-1", "low-2", "low-3", "low-4"), workload("mid", 5, "mid-0")}
			tc.edit(w)
			w.Asking(list("nvidia.com/gpu", tc.asks))
			c := w.bench(t, "Pod")
			lack, _ := c.Node("n").DeficitsOf(c.Wants)
			ch, ok := stopQueued(c, c.Node("n"), diagnosis.GPUsInUse, lack)
			got := ""
			if ok {
				var pods []string
				for _, p := range ch.Victims {
					pods = append(pods, p.Name)
				}
				slices.Sort(pods)
				_, rest, _ := strings.Cut(ch.Title, "Workload a/")
				of, _, _ := strings.Cut(rest, ",")
				got = of + ": " + strings.Join(pods, " ")
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
