package rcatest

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
)

// World is a small cluster that a test fills, in which pod a/w waits.
type World struct {
	*cluster.State
	Wait *corev1.Pod
}

// NewWorld has the pod and nothing else.
func NewWorld() *World {
	w := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "w", Labels: map[string]string{"app": "w"}},
		Spec:   corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	return &World{&cluster.State{Now: Noon, Taken: true, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}, Pods: []*corev1.Pod{w}}, w}
}

// AddNode adds one of an A100 with its report.
func (w *World) AddNode(n sim.Node, edits ...func(*corev1.Node, *nodeprobe.NodeGeometry)) {
	n.Model = "A100-40GB"
	o, geo := n.Object(Noon), n.Geometry(Noon)
	for _, edit := range edits {
		edit(o, geo)
	}
	w.Nodes, w.Geometries[n.Name] = append(w.Nodes, o), geo
}

// AddHolder adds a pod of a ReplicaSet that runs on a node and holds the instances of GPU 0
// that start at some memory slices.
func (w *World) AddHolder(name, node string, asks corev1.ResourceName, starts ...int) *corev1.Pod {
	p := Victim(name, 0, 0, 0, name)
	p.Spec.NodeName, p.UID = node, "uid"
	p.Spec.Containers[0] = corev1.Container{Name: "c", Resources: asked(List(string(asks), strconv.Itoa(len(starts))))}
	w.Pods = append(w.Pods, p)
	for i := range w.Geometries[node].Report.GPUs[0].Instances {
		for _, start := range starts {
			if in := &w.Geometries[node].Report.GPUs[0].Instances[i]; in.Start == start {
				in.Holder = &nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
			}
		}
	}
	return p
}

// Asking has the pod that waits ask for something.
func (w *World) Asking(asks corev1.ResourceList) { w.Wait.Spec.Containers[0].Resources = asked(asks) }

func asked(asks corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: asks, Limits: asks.DeepCopy()}
}

// List is of names and quantities in turn.
func List(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}
