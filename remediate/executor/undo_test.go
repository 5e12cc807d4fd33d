package executor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A caller that goes away in the middle leaves nothing behind.
func TestCallerGoesAway(t *testing.T) {
	for _, at := range []string{"evict", "wait until nobody", "set nvidia.com/mig.config", "wait for MIG manager"} {
		t.Run(at, func(t *testing.T) {
			c := newCell(t)
			node, d, f, _ := repartition(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := Apply(ctx, c.deps, d.Incident, f.ID, f.Plan, func(s journal.Progress) {
				if strings.HasPrefix(s.Text, at) {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "parked") {
				t.Error(err)
			}
			c.asBefore(t, node)
			c.running(t, "inference", 3)
		})
	}
}

// Who takes our mark off a node takes it over: it is left as it is.
func TestNodeTakenOver(t *testing.T) {
	c := newCell(t)
	node, d, f, _ := repartition(t, c)
	c.on["wait for MIG manager"] = func() {
		c.editNode(t, node, func(n *corev1.Node) { delete(n.Annotations, diagnosis.OperationAnnotation) })
		controlplane.Eventually(t, 10*time.Second, "MIG manager is done", func() (bool, string) {
			n := c.node(t, node)
			return n.Labels[nodeprobe.LabelMIGConfigState] == "success" && n.Labels["nvidia.com/gpu.deploy.device-plugin"] == "true", ""
		})
	}
	if _, err := c.apply(t, d, f); !errors.Is(err, plan.ErrStale) || !strings.Contains(err.Error(), "no longer marked as ours; it is left as it is, cordoned, which a person has to undo: kubectl uncordon "+node) {
		t.Error(err)
	}
	if n := c.node(t, node); !n.Spec.Unschedulable || n.Labels[nodeprobe.LabelMIGConfig] == "all-1g.5gb" {
		t.Errorf("unschedulable %v, config %s", n.Spec.Unschedulable, n.Labels[nodeprobe.LabelMIGConfig])
	}
}
