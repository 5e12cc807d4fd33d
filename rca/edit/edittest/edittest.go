// Package edittest opens the case of a test's cluster, and tells changes in a line, for the
// rooms in which changes are made. It says nothing of what is right.
package edittest

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// World is a small cluster that a test fills, in which pod a/w waits.
type World struct{ *rcatest.World }

// New is a world without nodes.
func New() *World { return &World{rcatest.NewWorld()} }

// Deployed adds the Deployment of the pod that waits, as the pod is now.
func (w *World) Deployed() {
	w.Deployments = append(w.Deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "d"}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: *w.Wait.Spec.DeepCopy()}}})
}

// Wholes adds nodes with one whole GPU each, which a pod h-NODE holds.
func (w *World) Wholes(names ...string) {
	for _, name := range names {
		w.AddNode(sim.Node{Name: name, MIGOff: []int{0}})
		w.AddHolder("h-"+name, name, view.WholeGPU, 0)
		w.Geometries[name].Report.GPUs[0].Holders = []nodeprobe.Holder{{Namespace: "a", Pod: "h-" + name, Container: "c"}}
	}
}

// Laid adds node n, whose GPU has seven 1g.5gb, and whose label asks for a config, with the
// entries of the operator.
func (w *World) Laid(config, state string, edits ...func(*corev1.Node, *nodeprobe.NodeGeometry)) {
	if w.ConfigMaps == nil {
		w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", "A100-40GB")}
	}
	label := func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGState] = state }
	w.AddNode(sim.Node{Name: "n", Config: config, Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}, append([]func(*corev1.Node, *nodeprobe.NodeGeometry){label}, edits...)...)
}

// Case is that of the pod that waits, not judged, of a workload of that kind named w.
func (w *World) Case(t testing.TB, kind string) *causes.Case {
	t.Helper()
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	i := incident.Incident{ID: "i", Workload: incident.Ref{Kind: kind, Namespace: "a", Name: "w"}, Pods: []incident.PodRef{{Name: w.Wait.Name, UID: string(w.Wait.UID)}}, Waiting: 1}
	k, err := causes.Open(evict.NewLedger(v), i)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Look has a case that was opened look at its gang and claims.
func (w *World) Look(t testing.TB, k *causes.Case) {
	t.Helper()
	if err := k.Look(t.Context(), func() *devices.Inventory { return devices.TakeInventory(w.State) }, nil); err != nil {
		t.Fatal(err)
	}
}

// Told is a change in a line: who does it, at which risk, and what no copy can show.
func Told(ch edit.Change) string {
	by := "plan"
	if ch.Manual {
		by = "hand"
	}
	out := fmt.Sprintf("by %s, %s risk: %s", by, ch.Risk, ch.Title)
	if ch.Untestable != "" {
		out += " (" + ch.Untestable + ")"
	}
	return out
}

// ToldAll are several, one behind the other.
func ToldAll(all []edit.Change) string {
	texts := make([]string, len(all))
	for i, ch := range all {
		texts[i] = Told(ch)
	}
	return strings.Join(texts, "; ")
}

// Mark writes on a node that a plan works on it.
func Mark(t testing.TB, n *corev1.Node, op diagnosis.Operation) {
	t.Helper()
	text, err := op.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations = map[string]string{diagnosis.OperationAnnotation: text}
}

// RefusedBy has the pod ask for a scheduler, which refuses it in such words.
func RefusedBy(scheduler, words string) func(*World) {
	return func(w *World) {
		w.Wait.Spec.SchedulerName = scheduler
		w.Wait.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: words}}
	}
}
