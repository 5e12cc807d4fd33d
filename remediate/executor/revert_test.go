package executor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// pausedOperand is one of the labels that MIG manager pauses while it works.
const pausedOperand = "nvidia.com/gpu.deploy.device-plugin"

// asks has somebody ask MIG manager for a config, and waits for its word on it.
func (c *cell) asks(t *testing.T, node, config, word string) {
	t.Helper()
	c.editNode(t, node, func(n *corev1.Node) { n.Labels[nodeprobe.LabelMIGConfig] = config })
	controlplane.Eventually(t, 10*time.Second, "MIG manager says "+word, func() (bool, string) {
		n := c.node(t, node)
		return n.Labels[nodeprobe.LabelMIGConfigState] == word && (word != "pending" || n.Labels[pausedOperand] == "paused-for-mig-change"), n.Labels[nodeprobe.LabelMIGConfigState]
	})
}

// MIG manager gave up and left the node without GPUs (mig-parted #485). The GPUs have
// what they had: the label alone goes back, nobody leaves, and the pod that needs no more
// than that runs.
func TestRevertOfAStuckLayout(t *testing.T) {
	c := newCell(t)
	node := c.gpuNode(t, 1)
	c.deployment(t, "inference", 2, spec("1g.5gb", ""))
	c.running(t, "inference", 2)
	c.stack.SetFaults(node, sim.Faults{GiveUp: true})
	c.asks(t, node, "all-2g.10gb", "pending")
	c.job(t, spec("1g.5gb", ""))
	d, f := c.stuck(t)
	if f.Title != `take `+node+` back to "all-1g.5gb", as its GPUs are laid out now` || len(f.Cost.Evictions) != 0 || len(f.Actions[0].Relayout.GPUs) != 0 {
		t.Errorf("%q: %+v", f.Title, f.Actions[0].Relayout)
	}
	m := c.machine(t, d, f, f.Actions[0])
	if err := m.ToTheEnd(t.Context()); err != nil || !strings.HasSuffix(m.rem.Status.Message, " runs") {
		t.Errorf("%s: %v", m.rem.Status.Message, err)
	}
	c.asBefore(t, node)
	if n := c.node(t, node); n.Labels[nodeprobe.LabelMIGConfigState] != "success" || n.Labels[pausedOperand] != "true" {
		t.Errorf("labels %v", n.Labels)
	}
	c.running(t, "inference", 2)
	c.wrote(t, []write{{"patch", "nodes", "", 200}, {"patch", "nodes", "", 200}, {"patch", "nodes", "", 200}})
}

// stuck diagnoses as if seven minutes had passed, and the probe had gone on reporting.
func (c *cell) stuck(t *testing.T) (diagnosis.Diagnosis, diagnosis.Fix) {
	t.Helper()
	var d diagnosis.Diagnosis
	controlplane.Eventually(t, 20*time.Second, "a layout that is stuck", func() (bool, string) {
		st := c.state(t)
		st.Now = st.Now.Add(7 * time.Minute)
		for _, geo := range st.Geometries {
			geo.Report.ObservedAt = metav1.NewTime(st.Now)
		}
		found, err := rca.Diagnose(t.Context(), st, rca.Options{Only: func(i incident.Incident) bool { return i.Workload.Namespace == c.ns && i.Workload.Kind == "Job" }})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Causes[0].ID != diagnosis.MIGConfigStuck {
			return false, ""
		}
		d = found[0]
		return true, ""
	})
	f := d.Fixes[0]
	if f.Kind != diagnosis.RevertMIGConfig || !f.Automatic || f.Proof.Verdict != diagnosis.Schedules {
		t.Fatalf("%+v", d.Fixes)
	}
	return d, f
}

// A layout that failed is taken back although the pod waits on for it: that is said, and
// counts as no try for the pod.
func TestRevertOfAFailedLayout(t *testing.T) {
	c := newCell(t)
	node := c.gpuNode(t, 1)
	c.stack.SetFaults(node, sim.Faults{Fail: true})
	c.asks(t, node, "all-2g.10gb", "failed")
	c.job(t, spec("2g.10gb", ""))
	d, f := c.offers(t, diagnosis.Unproven, diagnosis.RevertMIGConfig)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "ann", v1alpha1.Approve)
	c.crash.always = true
	rem = c.carriedOut(t, rem.Name, c.executor)
	c.crash.always = false
	if want := node + ` has the layout "all-1g.5gb"; the pod still waits`; rem.Status.Phase != v1alpha1.Succeeded || rem.Status.Message != want {
		t.Errorf("%s %q, want %q", rem.Status.Phase, rem.Status.Message, want)
	}
	c.asBefore(t, node)
}

// lost is a node whose GPU has seven 1g and not the three 2g that MIG manager says it has
// applied, and a pod that waits for one of those.
func (c *cell) lost(t *testing.T) (string, diagnosis.Diagnosis, diagnosis.Fix) {
	t.Helper()
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.Config = "all-2g.10gb" })
	c.configured(t)
	c.deployment(t, "inference", 2, spec("1g.5gb", ""))
	c.running(t, "inference", 2)
	c.job(t, spec("2g.10gb", ""))
	c.deps.Deadlines.Notice = time.Second
	d, f := c.finds(t, diagnosis.RevertMIGConfig)
	return node, d, f
}

// A layout that was lost is made again. Its label is what it should be, and MIG manager
// acts on a change alone: the entry that the GPUs have is asked for first.
func TestLostLayoutIsMadeAgain(t *testing.T) {
	for name, crashes := range map[string]bool{"by one executor": false, "by one that crashes at every write": true} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			node, d, f := c.lost(t)
			if r := f.Actions[0].Relayout; r.First != "all-1g.5gb" || r.Config != "all-2g.10gb" || len(f.Cost.Evictions) != 2 {
				t.Errorf("%q: %+v", f.Title, r)
			}
			rem := c.recorded(t, d, f)
			c.decide(t, rem, "ann", v1alpha1.Approve)
			c.crash.always = crashes
			rem = c.carriedOut(t, rem.Name, c.executor)
			c.crash.always = false
			if rem.Status.Phase != v1alpha1.Succeeded || rem.Status.Pod == "" || rem.Status.Evicted != 2 {
				t.Errorf("%s %q", rem.Status.Phase, rem.Status.Message)
			}
			if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" || n.Labels[nodeprobe.LabelMIGConfig] != "all-2g.10gb" {
				t.Errorf("unschedulable %v, mark %q, config %s", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation], n.Labels[nodeprobe.LabelMIGConfig])
			}
		})
	}
}

// There is nothing behind a way back: a node on which it fails is parked, and one whose
// caller goes away before it was asked for what is lost is asked for that once more.
func TestRevertThatFails(t *testing.T) {
	t.Run("MIG manager fails", func(t *testing.T) {
		c := newCell(t)
		node, d, f := c.lost(t)
		c.on["set nvidia.com/mig.config=all-2g.10gb"] = func() { c.stack.SetFaults(node, sim.Faults{Fail: true}) }
		if _, err := c.apply(t, d, f); err == nil || !strings.Contains(err.Error(), "parked") || !strings.Contains(err.Error(), "nothing behind that") {
			t.Error(err)
		}
		if mark := c.mark(t, node); mark == nil || !strings.Contains(mark.Parked, "MIG manager says failed") || !c.node(t, node).Spec.Unschedulable {
			t.Errorf("mark %+v", mark)
		}
	})
	t.Run("the caller goes away", func(t *testing.T) {
		c := newCell(t)
		node, d, f := c.lost(t)
		c.deps.Deadlines.Notice = 10 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := Apply(ctx, c.deps, d.Incident, f.ID, f.Plan, func(s journal.Progress) {
			if strings.HasPrefix(s.Text, "set nvidia.com/mig.config=all-1g.5gb") {
				controlplane.Eventually(t, 5*time.Second, "it goes away", func() (bool, string) { cancel(); return true, "" })
			}
		})
		if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "parked") {
			t.Error(err)
		}
		if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" || n.Labels[nodeprobe.LabelMIGConfig] != "all-2g.10gb" {
			t.Errorf("unschedulable %v, mark %q, config %s", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation], n.Labels[nodeprobe.LabelMIGConfig])
		}
	})
}
