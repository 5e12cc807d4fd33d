package remediate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/testdata/controlplane"
)

// R29: a pod that was replaced under its name since the approval, or even since the
// re-proof, is not evicted.
func TestReplacedPodIsNotEvicted(t *testing.T) {
	for _, when := range []string{"before the re-proof", "after the re-proof"} {
		t.Run(when, func(t *testing.T) {
			c := newCell(t)
			node := c.gpuNode(t, 1, func(n *sim.Node) { n.CPU = "2" })
			c.pod(t, "holder", on(node, spec("", "2")))
			c.running(t, "holder", 1)
			c.job(t, on(node, spec("", "1")))
			d, f := c.finds(t, rca.EvictPods)
			replace := func() {
				pods := c.Client().CoreV1().Pods(c.ns)
				if err := pods.Delete(t.Context(), "holder", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				controlplane.Eventually(t, 20*time.Second, "the old one is gone", func() (bool, string) {
					_, err := pods.Get(t.Context(), "holder", metav1.GetOptions{})
					return apierrors.IsNotFound(err), "" // by the kubelet's hand: it must not meet the new one with a deletion
				})
				s := spec("", "2")
				s.NodeName = node
				c.pod(t, "holder", s)
				c.running(t, "holder", 1)
			}
			if when == "before the re-proof" {
				replace()
			} else {
				c.on["evict"] = replace
			}
			out, err := c.apply(t, d, f)
			if !errors.Is(err, ErrStale) || out.Evicted != 0 {
				t.Errorf("outcome %+v, %v", out, err)
			}
			c.evictions(t, f, 0)
			c.untouched(t, c.running(t, "holder", 1)...)
			for _, p := range c.pods(t) {
				if p.Status.NominatedNodeName != "" {
					t.Errorf("%s is still nominated for %s", p.Name, p.Status.NominatedNodeName)
				}
			}
		})
	}
}

// A node that somebody works on already is refused, and nothing is written.
func TestMarkedNodeIsRefused(t *testing.T) {
	c := newCell(t)
	node, d, f, holders := repartition(t, c)
	c.editNode(t, node, func(n *corev1.Node) { n.Annotations[annotation] = `{"op":"another","id":"x"}` })
	if _, err := c.apply(t, d, f); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "another") {
		t.Error(err)
	}
	c.wrote(t, nil)
	c.untouched(t, holders...)
	if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[annotation] != `{"op":"another","id":"x"}` {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[annotation])
	}
}

// R13: of two who apply the same plan at once one does, and everybody is evicted
// once.
func TestTwoApplyAtOnce(t *testing.T) {
	c := newCell(t)
	_, d, f, _ := repartition(t, c)
	second := make(chan error, 1)
	_, first := Apply(t.Context(), c.deps, d.Incident, f.ID, f.Plan, func(s Step) {
		if s.N == 1 && !s.Done { // both have proved it again by now
			go func() {
				_, err := Apply(t.Context(), c.deps, d.Incident, f.ID, f.Plan, func(Step) {})
				second <- err
			}()
		}
	})
	errs := []error{first, <-second}
	refused := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(refused) != 1 || !errors.Is(refused[0], ErrRefused) && !errors.Is(refused[0], ErrStale) {
		t.Errorf("%v", errs)
	}
	c.evictions(t, f, 3)
}

// R14: whatever the plan relies on and changes between two writes ends it; what was
// begun is taken back.
func TestChangeBetweenWritesEndsThePlan(t *testing.T) {
	taint := func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})
	}
	for _, tc := range []struct {
		name, at string
		change   func(*testing.T, *cell, string)
		says     string
		evicted  int
	}{
		{"cordoned by a person before us", "cordon", func(t *testing.T, c *cell, node string) {
			c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}, "unschedulable", 0},
		{"tainted before the cordon", "cordon", func(t *testing.T, c *cell, node string) { c.editNode(t, node, taint) }, "taints", 0},
		{"a victim's spec before its eviction", "evict", func(t *testing.T, c *cell, _ string) {
			for _, p := range c.pods(t) {
				if _, err := c.Client().CoreV1().Pods(c.ns).Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"main","image":"registry.example/y"}]}}`), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}, "spec of Pod", 0},
		{"tainted before the label", "set nvidia.com/mig.config", func(t *testing.T, c *cell, node string) { c.editNode(t, node, taint) }, "taints", 3},
		{"opened before the label", "set nvidia.com/mig.config", func(t *testing.T, c *cell, node string) {
			c.editNode(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
		}, "opened", 3},
		{"another config before the label", "set nvidia.com/mig.config", func(t *testing.T, c *cell, node string) {
			c.editNode(t, node, func(n *corev1.Node) { n.Labels["nvidia.com/mig.strategy"] = "single" })
		}, "mig", 3},
		{"a new holder before the label", "set nvidia.com/mig.config", func(t *testing.T, c *cell, node string) {
			s := spec("1g.5gb", "")
			s.NodeName = node
			c.pod(t, "intruder", s)
			c.running(t, "intruder", 1)
		}, "GPU 0", 3},
		{"less of it before the label", "set nvidia.com/mig.config", func(t *testing.T, c *cell, node string) {
			controlplane.Eventually(t, 10*time.Second, "the status is changed", func() (bool, string) {
				n := c.node(t, node)
				n.Status.Allocatable["nvidia.com/mig-1g.5gb"] = *n.Status.Allocatable.Pods()
				_, err := c.Client().CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
				return err == nil, "conflict"
			})
		}, "allocatable", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			node, d, f, holders := repartition(t, c)
			c.on[tc.at] = func() { tc.change(t, c, node) }
			out, err := c.apply(t, d, f)
			if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), tc.says) || out.Evicted != tc.evicted {
				t.Errorf("outcome %+v, %v", out, err)
			}
			n := c.node(t, node)
			if n.Annotations[annotation] != "" || n.Labels[labelConfig] != "all-1g.5gb" || n.Spec.Unschedulable != (tc.name == "cordoned by a person before us") {
				t.Errorf("unschedulable %v, mark %q, config %s", n.Spec.Unschedulable, n.Annotations[annotation], n.Labels[labelConfig])
			}
			if tc.evicted == 0 {
				c.untouched(t, holders...)
			}
			c.evictions(t, f, tc.evicted)
			for _, w := range c.writes(t) {
				if tc.at == "cordon" {
					t.Errorf("written: %+v", w)
				}
			}
		})
	}
}

// A workload whose template changed since the re-proof is not patched; a mere
// label on it does not matter.
func TestChangedTemplateIsNotPatched(t *testing.T) {
	for _, tc := range []struct {
		name, patch string
		stale       bool
	}{{"spec", `{"spec":{"replicas":3}}`, true}, {"label", `{"metadata":{"labels":{"a":"b"}}}`, false}} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			c.gpuNode(t, 1)
			s := spec("1g.5gb", "")
			s.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
			c.deployment(t, "serving", 1, s)
			d, f := c.finds(t, rca.FixSelector)
			c.on["patch"] = func() {
				if _, err := c.Client().AppsV1().Deployments(c.ns).Patch(t.Context(), "serving", types.MergePatchType, []byte(tc.patch), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.apply(t, d, f); errors.Is(err, ErrStale) != tc.stale || !tc.stale && err != nil {
				t.Error(err)
			}
			if tc.stale {
				c.wrote(t, nil)
			}
		})
	}
}

// A Job that the API server would not take anew is not deleted.
func TestNothingIsDeletedForWhatIsNotTaken(t *testing.T) {
	c := newCell(t)
	c.gpuNode(t, 1)
	s := spec("1g.5gb", "")
	s.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
	p := c.pod(t, "notebook", s)
	d, f := c.finds(t, rca.FixSelector)
	a := f.Actions[0]
	a.Patch = []byte(`{"spec":{"nodeSelector":{"not a label":"x"}}}`)
	c.refusesToRemake(t, d, f, a)
	now, err := c.Client().CoreV1().Pods(c.ns).Get(t.Context(), "notebook", metav1.GetOptions{})
	if err != nil || now.UID != p.UID || now.DeletionTimestamp != nil {
		t.Errorf("pod %v, %v", now, err)
	}
	c.wrote(t, nil)
}

// refusesToRemake runs one action by itself and wants it to fail.
func (c *cell) refusesToRemake(t *testing.T, d rca.Diagnosis, f rca.Fix, a rca.Action) {
	t.Helper()
	m := c.machine(t, d, f, a)
	if err := m.toTheEnd(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was deleted") {
		t.Error(err)
	}
}
