package executor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
)

// A node that somebody works on already is no part of any plan, that is said, and nothing is
// written.
func TestMarkedNodeIsRefused(t *testing.T) {
	c := newCell(t)
	node, d, f, holders := repartition(t, c)
	c.editNode(t, node, func(n *corev1.Node) { n.Annotations[diagnosis.OperationAnnotation] = `{"op":"another","id":"x"}` })
	if _, err := c.apply(t, d, f); !errors.Is(err, plan.ErrStale) || !strings.Contains(err.Error(), "node "+node+" is marked by plan another") {
		t.Error(err)
	}
	c.wrote(t, nil)
	c.untouched(t, holders...)
	if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != `{"op":"another","id":"x"}` {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
}

// R13: of two who apply the same plan at once one does, and everybody is evicted
// once.
func TestTwoApplyAtOnce(t *testing.T) {
	c := newCell(t)
	_, d, f, _ := repartition(t, c)
	second := make(chan error, 1)
	_, first := Apply(t.Context(), c.deps, d.Incident, f.ID, f.Plan, func(s journal.Progress) {
		if s.N == 1 && !s.Done { // both have proved it again by now
			go func() {
				_, err := Apply(t.Context(), c.deps, d.Incident, f.ID, f.Plan, func(journal.Progress) {})
				second <- err
			}()
		}
	})
	errs := []error{first, <-second}
	refused := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(refused) != 1 || !errors.Is(refused[0], plan.ErrRefused) && !errors.Is(refused[0], plan.ErrStale) {
		t.Errorf("%v", errs)
	}
	c.evictions(t, f, 3)
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
			d, f := c.finds(t, diagnosis.FixSelector)
			c.on["patch"] = func() {
				if _, err := c.Client().AppsV1().Deployments(c.ns).Patch(t.Context(), "serving", types.MergePatchType, []byte(tc.patch), metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.apply(t, d, f); errors.Is(err, plan.ErrStale) != tc.stale || !tc.stale && err != nil {
				t.Error(err)
			}
			if tc.stale {
				c.wrote(t, nil)
			}
		})
	}
}

// A Job that the API server would not take again is not deleted.
func TestNothingIsDeletedForWhatIsNotTaken(t *testing.T) {
	c := newCell(t)
	c.gpuNode(t, 1)
	s := spec("1g.5gb", "")
	s.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
	p := c.pod(t, "notebook", s)
	d, f := c.finds(t, diagnosis.FixSelector)
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
func (c *cell) refusesToRemake(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix, a diagnosis.Action) {
	t.Helper()
	m := c.machine(t, d, f, a)
	if err := m.ToTheEnd(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was deleted") {
		t.Error(err)
	}
}
