package causes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// world is a small cluster that a row of a table fills.
type world struct {
	*cluster.State
	measure diagnosis.Measure
}

func newWorld() *world {
	return &world{State: &cluster.State{Now: rcatest.Noon, Taken: true, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}}
}

// gpuNode adds a node with its report, as a probe would write it.
func (w *world) gpuNode(n sim.Node, edits ...func(*corev1.Node, *nodeprobe.NodeGeometry)) *corev1.Node {
	o, geo := n.Object(rcatest.Noon.Add(-time.Hour)), n.Geometry(rcatest.Noon)
	for _, edit := range edits {
		edit(o, geo)
	}
	w.Nodes, w.Geometries[n.Name] = append(w.Nodes, o), geo
	return o
}

// unreported adds a node that no probe reports of.
func (w *world) unreported(n sim.Node, edits ...func(*corev1.Node, *nodeprobe.NodeGeometry)) {
	w.gpuNode(n, edits...)
	delete(w.Geometries, n.Name)
}

// pod adds one that asks for so many of a resource: on a node it runs, without one it waits.
func (w *world) pod(name, node, asks string, count int64, edits ...func(*corev1.Pod)) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if asks != "" {
		list[corev1.ResourceName(asks)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), Labels: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}}}
	p.Status.Phase = corev1.PodRunning
	if node == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	}
	for _, edit := range edits {
		edit(p)
	}
	w.Pods = append(w.Pods, p)
	return p
}

// holds has a pod hold the instances that start at some memory slices of a GPU; none: the GPU itself.
func (w *world) holds(p *corev1.Pod, gpu int, starts ...int) {
	h := nodeprobe.Holder{Namespace: p.Namespace, Pod: p.Name, Container: "main"}
	g := &w.Geometries[p.Spec.NodeName].Report.GPUs[gpu]
	if len(starts) == 0 {
		g.Holders = append(g.Holders, h)
	}
	for _, start := range starts {
		for i := range g.Instances {
			if g.Instances[i].Start == start {
				g.Instances[i].Holder = &h
			}
		}
	}
}

// open opens and looks at the incident of pod w, or of a workload of that name that has no pod yet.
func (w *world) open(t *testing.T) *Case {
	t.Helper()
	refusals := admission.Refusals(w.State)
	all := incident.Group(incident.WithKubelet(w.Pods, w.Events, time.Time{}), w.Owner, refusals...)
	of := -1
	for k, i := range all {
		for _, p := range i.Pods {
			if p.Name == "w" {
				of = k
			}
		}
		if i.Workload.Name == "w" {
			of = k
		}
	}
	if of < 0 {
		t.Fatalf("w does not wait: %+v", all)
	}
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	v.Refusals = refusals
	c, err := Open(evict.NewLedger(v), all[of])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Look(t.Context(), func() *devices.Inventory { return devices.TakeInventory(w.State) }, w.measure); err != nil {
		t.Fatal(err)
	}
	return c
}

// told is all that the rules say of pod w, a line for each cause and each evidence.
func (w *world) told(t *testing.T) string {
	t.Helper()
	c := w.open(t)
	_, causes := c.Judge()
	c.Quote(causes)
	return causesText(causes)
}

func causesText(causes []diagnosis.Cause) string {
	var b strings.Builder
	for _, k := range causes {
		fmt.Fprintf(&b, "%s %s %s: %s\n", k.ID, k.Certainty, strings.Join(k.Nodes, ","), k.Says)
		for _, e := range k.Evidence {
			fmt.Fprintf(&b, "  %s: %s\n", e.Ref, e.Fact)
		}
	}
	return b.String()
}

// rows is a table: by the rule that a row holds, the cluster and what is told of pod "w".
type rows map[string]struct {
	fill func(*world)
	want string
}

func (r rows) run(t *testing.T) {
	t.Helper()
	for name, row := range r {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			row.fill(w)
			if got := w.told(t); strings.TrimSpace(got) != strings.TrimSpace(row.want) {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}
