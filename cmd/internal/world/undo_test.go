package world

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
)

// A MIG manager that fails, or never ends, leaves the node as it was: open, with
// its old layout asked for, and nobody's mark on it.
func TestFailedManagerIsTakenBack(t *testing.T) {
	t.Parallel() // it waits
	for name, c := range map[string]struct {
		faults sim.Faults
		says   string
	}{
		"fails":         {sim.Faults{Fail: true}, "says failed"},
		"never notices": {sim.Faults{Die: true}, "not within"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			w, err := New(ctx, Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if err := w.AddNode(ctx, sim.Node{Name: "gpu-1", Model: "A100-40GB", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}, Config: "all-1g.5gb"}, time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Client().AppsV1().Deployments("ml").Create(ctx, deployment("training", "nvidia.com/mig-2g.10gb", 1), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.stack.SetFaults("gpu-1", c.faults)
			var found []diagnosis.Diagnosis
			eventually(t, "a finding", func() bool {
				st, err := live.Read(ctx, w.Client(), w.Dynamic(), time.Now)
				if err != nil {
					t.Fatal(err)
				}
				found, err = rca.Diagnose(ctx, st, rca.Options{})
				return err == nil && len(found) == 1 && len(found[0].Nodes) == 1 && found[0].Fixes[0].Kind == diagnosis.RepartitionGPU
			})
			deps := executor.Deps{Client: w.Client(), Dynamic: w.Dynamic(), Now: time.Now, Poll: 10 * time.Millisecond, Deadlines: pace.Deadlines{Manager: time.Second}}
			_, err = executor.Apply(ctx, deps, found[0].Incident, 1, found[0].Fixes[0].Plan, func(journal.Progress) {})
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "parked") {
				t.Errorf("error %v, want %q", err, c.says)
			}
			n, err := w.Client().CoreV1().Nodes().Get(ctx, "gpu-1", metav1.GetOptions{})
			if err != nil || n.Spec.Unschedulable || n.Labels[nodeprobe.LabelMIGConfig] != "all-1g.5gb" || n.Annotations[diagnosis.OperationAnnotation] != "" {
				t.Errorf("node: unschedulable %v, labels %v, annotations %v, %v", n.Spec.Unschedulable, n.Labels, n.Annotations, err)
			}
		})
	}
}
