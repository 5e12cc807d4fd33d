package executor

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// Every fix, applied on a real control plane until the pod runs; the audit log
// tells how it was done.
func TestEveryFixIsApplied(t *testing.T) {
	team := corev1.Taint{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}
	wrong := func(s corev1.PodSpec) corev1.PodSpec {
		s.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
		return s
	}
	for _, tc := range []struct {
		name  string
		make  func(*testing.T, *cell)
		kinds []diagnosis.FixKind
		// writes are those of the executor, without names.
		writes []write
	}{
		{"pods are moved", func(t *testing.T, c *cell) {
			small := func(n *sim.Node) { n.CPU = "2" }
			first := c.gpuNode(t, 1, small)
			c.deployment(t, "inference", 1, spec("", "2"))
			c.running(t, "inference", 1)
			c.gpuNode(t, 2, small)
			c.job(t, on(first, spec("", "2")))
		}, []diagnosis.FixKind{diagnosis.MovePods}, []write{{"patch", "pods/status", "", 200}, {"create", "pods/eviction", "", 201}}},
		{"pods are evicted", func(t *testing.T, c *cell) {
			node := c.gpuNode(t, 1)
			c.deployment(t, "inference", 7, on(node, spec("1g.5gb", "")))
			c.running(t, "inference", 7)
			c.job(t, spec("1g.5gb", ""))
		}, []diagnosis.FixKind{diagnosis.EvictPods}, []write{{"patch", "pods/status", "", 200}, {"create", "pods/eviction", "", 201}}},
		{"the selector of a Deployment", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.deployment(t, "serving", 2, wrong(spec("1g.5gb", "")))
		}, []diagnosis.FixKind{diagnosis.FixSelector}, []write{{"patch", "deployments", "", 200}}},
		{"the selector of a Job", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.job(t, wrong(spec("1g.5gb", "")))
		}, []diagnosis.FixKind{diagnosis.FixSelector}, []write{{"create", "jobs", "", 201}, {"delete", "jobs", "", 200}, {"create", "jobs", "", 201}, {"delete", "jobs", "", 200}}},
		{"the selector of a bare pod", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.pod(t, "notebook", wrong(spec("1g.5gb", "")))
		}, []diagnosis.FixKind{diagnosis.FixSelector}, []write{{"create", "jobs", "", 201}, {"delete", "pods", "", 200}, {"create", "pods", "", 201}, {"delete", "jobs", "", 200}}},
		{"a node is uncordoned", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1, func(n *sim.Node) { n.Cordoned = true })
			c.job(t, spec("1g.5gb", ""))
		}, []diagnosis.FixKind{diagnosis.UncordonNode}, []write{{"patch", "nodes", "", 200}}},
		{"a toleration for a Job's pod", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1, func(n *sim.Node) { n.Taints = []corev1.Taint{team} })
			c.job(t, spec("1g.5gb", ""))
		}, []diagnosis.FixKind{diagnosis.AddToleration}, []write{{"patch", "pods", "", 200}}},
		{"a toleration for a Deployment", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1, func(n *sim.Node) { n.Taints = []corev1.Taint{team} })
			c.deployment(t, "serving", 1, spec("1g.5gb", ""))
		}, []diagnosis.FixKind{diagnosis.AddToleration}, []write{{"patch", "deployments", "", 200}}},
		{"a GPU is repartitioned", func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.deployment(t, "inference", 3, spec("1g.5gb", ""))
			c.running(t, "inference", 3)
			c.job(t, spec("2g.10gb", ""))
		}, []diagnosis.FixKind{diagnosis.RepartitionGPU}, []write{{"patch", "nodes", "", 200}, {"create", "pods/eviction", "", 201}, {"create", "pods/eviction", "", 201},
			{"create", "pods/eviction", "", 201}, {"patch", "nodes", "", 200}, {"patch", "nodes", "", 200}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			tc.make(t, c)
			d, f := c.finds(t, tc.kinds...)
			out, err := c.apply(t, d, f)
			if err != nil || out.Pod == "" || out.Evicted != len(f.Cost.Evictions) || out.Fix.Plan != f.Plan {
				t.Errorf("outcome %+v, %v", out, err)
			}
			last := c.steps[len(c.steps)-1]
			if last.N != last.Of || !last.Done {
				t.Errorf("the last step is %+v", last)
			}
			c.wrote(t, tc.writes)
			c.evictions(t, f, len(f.Cost.Evictions))
		})
	}
}

// accepted are the executor's writes without names, and without those that lost against
// another writer and were made again. The scheduler takes a nomination back whenever it
// tries the pod in vain, before an eviction or behind it: then the pod is nominated again.
func (c *cell) accepted(t *testing.T) []write {
	t.Helper()
	var out []write
	for _, w := range c.writes(t) {
		w.name = ""
		again := w.resource == "pods/status" && slices.Contains(out, w)
		if w.code != 409 && !again {
			out = append(out, w)
		}
	}
	return out
}

// wrote wants exactly these writes of the executor, in this order; those that lost
// against another writer, and were made again, are left out.
func (c *cell) wrote(t *testing.T, want []write) {
	t.Helper()
	var got []write
	ok := func() bool {
		got = c.accepted(t)
		return slices.Equal(got, want)
	}
	if ok() {
		return
	}
	controlplane.Eventually(t, time.Second, "the writes are in the audit log", func() (bool, string) {
		done := ok()
		return done || len(got) > len(want), ""
	})
	if !slices.Equal(got, want) {
		t.Errorf("writes %+v, want %+v", got, want)
	}
}
