package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// offering says how many whole GPUs a node can give out, and what its probe says of
// their health.
func (c *cell) offering(t *testing.T, node, count string, healthy bool) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "the node offers "+count+" GPUs", func() (bool, string) {
		n := c.node(t, node)
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(count)
		_, err := c.Client().CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	c.health(t, node, healthy)
}

// health is what the probe of a node says of all its GPUs.
func (c *cell) health(t *testing.T, node string, healthy bool) {
	t.Helper()
	reports := c.Dynamic().Resource(nodeprobe.Resource)
	controlplane.Eventually(t, 10*time.Second, "the probe has reported", func() (bool, string) {
		report, err := reports.Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		var geo nodeprobe.NodeGeometry
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(report.Object, &geo); err != nil {
			return false, err.Error()
		}
		for i := range geo.Report.GPUs {
			geo.Report.GPUs[i].Healthy = healthy
		}
		geo.Report.ObservedAt = metav1.Now()
		u, err := sim.Unstructured(&geo)
		if err == nil {
			_, err = reports.Update(t.Context(), u, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// sick is a node whose only GPU is unhealthy, and a pod that waits for it.
func (c *cell) sick(t *testing.T) (string, diagnosis.Diagnosis, diagnosis.Fix) {
	t.Helper()
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.MIGOff, n.Layouts, n.Config = []int{0}, nil, "all-disabled" })
	c.offering(t, node, "0", false)
	s := spec("", "")
	s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	c.pod(t, "training", s)
	d, f := c.offers(t, diagnosis.Unproven, diagnosis.QuarantineGPU)
	return node, d, f
}

func (c *cell) mark(t *testing.T, node string) *diagnosis.Operation {
	t.Helper()
	mark, err := diagnosis.OperationOn(c.node(t, node))
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

func (c *cell) ticket(t *testing.T, name string) (note string, about corev1.ObjectReference) {
	t.Helper()
	e, err := c.Client().EventsV1().Events(metav1.NamespaceDefault).Get(t.Context(), "unpend-ticket-"+name[:16], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return e.Note, e.Regarding
}

// A node with a sick GPU is closed for good, in one write with the mark that says so; the
// ticket's text is an Event of it; and nothing says that a ticket was filed or that the
// pod runs. Who opens it by a plan takes the mark away with the cordon.
func TestQuarantine(t *testing.T) {
	for name, executor := range map[string]bool{"by the executor, a new one at every look": true, "from a terminal": false} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			node, d, f := c.sick(t)
			var message string
			if executor {
				c.crash.always = true
				rem := c.recorded(t, d, f)
				c.decide(t, rem, "ann", v1alpha1.Approve)
				rem = c.carriedOut(t, rem.Name, c.executor)
				c.crash.always = false
				if message = rem.Status.Message; rem.Status.Phase != v1alpha1.Succeeded || rem.Status.Pod != "" || rem.Status.Evicted != 0 {
					t.Errorf("%s: %+v", rem.Status.Phase, rem.Status)
				}
				if past, err := (plan.Store{Dynamic: c.Dynamic()}).Outcomes(t.Context()); err != nil || len(past) != 0 {
					t.Errorf("it counts as tried for a pod: %+v, %v", past, err)
				}
			} else {
				out, err := c.apply(t, d, f)
				if message = out.Says; err != nil || out.Pod != "" || out.Evicted != 0 {
					t.Errorf("outcome %+v, %v", out, err)
				}
				c.wrote(t, []write{{"patch", "nodes", "", 200}, {"create", "events", "", 201}})
			}
			want := fmt.Sprintf("%s is quarantined: cordoned until somebody opens it; no hardware ticket was filed, its text is Event default/unpend-ticket-%.16s; the pod still waits", node, f.Plan)
			if message != want {
				t.Errorf("says %q, want %q", message, want)
			}
			mark := c.mark(t, node)
			if n := c.node(t, node); !n.Spec.Unschedulable || mark == nil || mark.Quarantined != f.Title || mark.Parked != "" || mark.PriorUnschedulable || mark.Plan != f.Plan {
				t.Errorf("unschedulable %v, mark %+v", n.Spec.Unschedulable, mark)
			}
			note, about := c.ticket(t, f.Plan)
			if about.Kind != "Node" || about.Name != node || note != f.Actions[0].Note || !strings.HasPrefix(note, "Hardware ticket: GPU unhealthy on node "+node+"\nGPU 0: ") {
				t.Errorf("about %+v: %s", about, note)
			}
			c.opened(t, node)
		})
	}
}

// opened mends the GPU, and has the node opened by a plan.
func (c *cell) opened(t *testing.T, node string) {
	t.Helper()
	c.offering(t, node, "1", true)
	d, f := c.finds(t, diagnosis.UncordonNode)
	if !strings.HasSuffix(f.Title, ", which unpend keeps closed for its sick GPU") || f.Risk != "high" {
		t.Errorf("%q, risk %s", f.Title, f.Risk)
	}
	if out, err := c.apply(t, d, f); err != nil || out.Pod == "" {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
}

// What was begun is taken back: the node is open and has no mark.
func TestQuarantineIsTakenBack(t *testing.T) {
	c := newCell(t)
	node, d, f := c.sick(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Apply(ctx, c.deps, d.Incident, f.ID, f.Plan, func(s journal.Progress) {
		if strings.HasPrefix(s.Text, "see that") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "parked") {
		t.Error(err)
	}
	if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
}

// A node that somebody closes first is theirs: nothing is written. One that somebody opens
// is open: the mark that is left says nothing any more.
func TestQuarantineOfOthers(t *testing.T) {
	c := newCell(t)
	node, d, f := c.sick(t)
	m := c.machine(t, d, f, f.Actions[0])
	c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if err := m.ToTheEnd(t.Context()); !errors.Is(err, plan.ErrStale) || !strings.Contains(err.Error(), `unschedulable is "true"`) {
		t.Error(err)
	}
	c.wrote(t, nil)
	c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	if err := c.machine(t, d, f, f.Actions[0]).ToTheEnd(t.Context()); err != nil {
		t.Error(err)
	}
	c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	if n := c.node(t, node); c.mark(t, node) != nil || n.Annotations[diagnosis.OperationAnnotation] == "" {
		t.Errorf("mark %q still counts", n.Annotations[diagnosis.OperationAnnotation])
	}
}

// Only what mends a node may be applied without a proof that the pod runs by it, and only
// alone.
func TestUnprovenIsRefused(t *testing.T) {
	action := []diagnosis.Action{{Verb: diagnosis.VerbCordon}}
	for _, tc := range []struct {
		kinds   []diagnosis.FixKind
		verdict diagnosis.Verdict
		ok      bool
	}{
		{[]diagnosis.FixKind{diagnosis.QuarantineGPU}, diagnosis.Unproven, true},
		{[]diagnosis.FixKind{diagnosis.RevertMIGConfig}, diagnosis.Unproven, true},
		{[]diagnosis.FixKind{diagnosis.RevertMIGConfig}, diagnosis.Waits, false},
		{[]diagnosis.FixKind{diagnosis.QuarantineGPU}, diagnosis.Refuted, false},
		{[]diagnosis.FixKind{diagnosis.AddToleration, diagnosis.QuarantineGPU}, diagnosis.Unproven, false},
		{[]diagnosis.FixKind{diagnosis.EvictPods}, diagnosis.Unproven, false},
		{[]diagnosis.FixKind{diagnosis.RepartitionGPU}, diagnosis.Unproven, false},
	} {
		err := permitted(diagnosis.Fix{Kinds: tc.kinds, Automatic: true, Actions: action, Proof: diagnosis.Proof{Verdict: tc.verdict}})
		if (err == nil) != tc.ok {
			t.Errorf("%v %s: %v", tc.kinds, tc.verdict, err)
		}
	}
}
