package executor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// repartition is the main case: three holders on one GPU, and a Job that needs
// another layout.
func repartition(t *testing.T, c *cell) (node string, d diagnosis.Diagnosis, f diagnosis.Fix, holders []corev1.Pod) {
	t.Helper()
	node = c.gpuNode(t, 1)
	c.deployment(t, "inference", 3, spec("1g.5gb", ""))
	holders = c.running(t, "inference", 3)
	c.job(t, spec("2g.10gb", ""))
	d, f = c.finds(t, diagnosis.RepartitionGPU)
	return node, d, f, holders
}

// untouched wants the pods to be the same ones, running.
func (c *cell) untouched(t *testing.T, pods ...corev1.Pod) {
	t.Helper()
	now := c.pods(t)
	for _, p := range pods {
		if !slices.ContainsFunc(now, func(q corev1.Pod) bool {
			return q.UID == p.UID && q.Status.Phase == corev1.PodRunning && q.DeletionTimestamp == nil
		}) {
			t.Errorf("pod %s is not what it was", p.Name)
		}
	}
}

// R12: a MIG manager that fails, dies, wedges or is slow.
func TestManagerFaults(t *testing.T) {
	for _, tc := range []struct {
		name   string
		faults sim.Faults
		says   string // empty: it works after all
		parked bool
	}{
		{"fails", sim.Faults{Fail: true}, "says failed", false},
		{"dies", sim.Faults{Die: true}, "not within 6s", false},
		{"wedges", sim.Faults{Wedge: true}, "stuck: pending and paused", true},
		{"is slow", sim.Faults{Slow: 2 * time.Second}, "", false},
		{"is too slow", sim.Faults{Slow: 8 * time.Second}, "not within 6s", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			c.deps.Deadlines.Manager, c.deps.Deadlines.Wedge = 6*time.Second, 3*time.Second
			if tc.faults.Slow > 0 {
				c.deps.Deadlines.Wedge = 20 * time.Second
			}
			node, d, f, _ := repartition(t, c)
			c.stack.SetFaults(node, tc.faults)
			if tc.name == "is too slow" { // on the way back it is not: it ends the first work when it was asked to go back
				c.on["wait for MIG manager"] = func() {
					controlplane.Eventually(t, 5*time.Second, "MIG manager works", func() (bool, string) { return c.node(t, node).Labels[nodeprobe.LabelMIGConfigState] == "pending", "" })
					c.stack.SetFaults(node, sim.Faults{})
				}
			}
			out, err := c.apply(t, d, f)
			if tc.says == "" {
				if err != nil || out.Pod == "" {
					t.Errorf("outcome %+v, %v", out, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "parked") != tc.parked || out.Pod != "" {
				t.Errorf("outcome %+v, %v", out, err)
			}
			if tc.parked {
				c.parked(t, node)
			} else {
				c.asBefore(t, node)
				c.running(t, "inference", 3)
			}
			c.evictions(t, f, 3)
			c.backOnce(t)
		})
	}
}

// backOnce wants the config set once and set back once, whatever came of it.
func (c *cell) backOnce(t *testing.T) {
	t.Helper()
	patches := 0
	for _, w := range c.writes(t) {
		if w.verb == "patch" && w.resource == "nodes" && w.code == 200 {
			patches++
		}
	}
	if patches != 4 { // cordon, config, config back, then open again or park
		t.Errorf("%d writes to the node, want 4: %+v", patches, c.writes(t))
	}
}

func (c *cell) parked(t *testing.T, node string) {
	t.Helper()
	n := c.node(t, node)
	var mark diagnosis.Operation
	if err := json.Unmarshal([]byte(n.Annotations[diagnosis.OperationAnnotation]), &mark); err != nil {
		t.Fatalf("mark %q: %v", n.Annotations[diagnosis.OperationAnnotation], err)
	}
	if !n.Spec.Unschedulable || !strings.Contains(mark.Parked, "stuck") || mark.Step != "parked" || mark.PriorMIGConfig != "all-1g.5gb" || n.Labels[nodeprobe.LabelMIGConfig] != "all-1g.5gb" {
		t.Errorf("unschedulable %v, mark %+v, config %s", n.Spec.Unschedulable, mark, n.Labels[nodeprobe.LabelMIGConfig])
	}
}

// A cordoned node that a fix opens is opened last; when the fix fails, it stays
// closed.
func TestOpenedLast(t *testing.T) {
	for name, faults := range map[string]sim.Faults{"success": {}, "failure": {Fail: true}} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			node := c.gpuNode(t, 1, func(n *sim.Node) { n.Cordoned = true })
			c.job(t, spec("2g.10gb", ""))
			c.stack.SetFaults(node, faults)
			d, f := c.finds(t, diagnosis.UncordonNode, diagnosis.RepartitionGPU)
			out, err := c.apply(t, d, f)
			if (err != nil) != faults.Fail || (out.Pod == "") != faults.Fail {
				t.Errorf("outcome %+v, %v", out, err)
			}
			n := c.node(t, node)
			if n.Spec.Unschedulable != faults.Fail || n.Annotations[diagnosis.OperationAnnotation] != "" {
				t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
			}
		})
	}
}
