package changes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

const (
	mig1g = corev1.ResourceName("nvidia.com/mig-1g.5gb")
	mig2g = corev1.ResourceName("nvidia.com/mig-2g.10gb")
)

// world is a small cluster that a test fills, in which pod a/w of deployment a/w waits.
type world struct {
	*cluster.State
	wait *corev1.Pod
}

func newWorld() *world {
	w := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "w", Labels: map[string]string{"app": "w"}},
		Spec:   corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	return &world{&cluster.State{Now: rcatest.Noon, Taken: true, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}, Pods: []*corev1.Pod{w}}, w}
}

// deployed adds the deployment of the pod that waits.
func (w *world) deployed() {
	w.Deployments = append(w.Deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "d"}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: *w.wait.Spec.DeepCopy()}}})
}

// node adds one of an A100 with its report.
func (w *world) node(n sim.Node, edits ...func(*corev1.Node, *nodeprobe.NodeGeometry)) {
	n.Model = "A100-40GB"
	o, geo := n.Object(rcatest.Noon), n.Geometry(rcatest.Noon)
	for _, edit := range edits {
		edit(o, geo)
	}
	w.Nodes, w.Geometries[n.Name] = append(w.Nodes, o), geo
}

// holder adds a pod of a ReplicaSet that runs on a node and holds the instances of GPU 0
// that start at some memory slices.
func (w *world) holder(name, node string, asks corev1.ResourceName, starts ...int) *corev1.Pod {
	p := rcatest.Victim(name, 0, 0, 0, name)
	p.Spec.NodeName, p.UID = node, "uid"
	p.Spec.Containers[0] = gpuContainer("c", int64(len(starts)))
	lists := &p.Spec.Containers[0].Resources
	for _, list := range []corev1.ResourceList{lists.Requests, lists.Limits} {
		q := list[view.WholeGPU]
		delete(list, view.WholeGPU)
		list[asks] = q
	}
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

// bench is that of the pod that waits, not judged, of a workload of that kind named w.
func (w *world) bench(t *testing.T, kind string) *Bench {
	t.Helper()
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	i := incident.Incident{ID: "i", Workload: incident.Ref{Kind: kind, Namespace: "a", Name: "w"}, Pods: []incident.PodRef{{Name: "w", UID: "w"}}, Waiting: 1}
	k, err := causes.Open(evict.NewLedger(v), i)
	if err != nil {
		t.Fatal(err)
	}
	return New(k, nil)
}
