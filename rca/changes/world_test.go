package changes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/causes"
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
	*rcatest.World
	wait *corev1.Pod
}

func newWorld() *world {
	w := rcatest.NewWorld()
	return &world{w, w.Wait}
}

// deployed adds the deployment of the pod that waits.
func (w *world) deployed() {
	w.Deployments = append(w.Deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "d"}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: *w.wait.Spec.DeepCopy()}}})
}

func (w *world) node(n sim.Node, edits ...func(*corev1.Node, *nodeprobe.NodeGeometry)) {
	w.AddNode(n, edits...)
}

func (w *world) holder(name, node string, asks corev1.ResourceName, starts ...int) *corev1.Pod {
	return w.AddHolder(name, node, asks, starts...)
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
