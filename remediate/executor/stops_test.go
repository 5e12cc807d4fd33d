package executor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// half is a workload of two pods whose selector only one node with one GPU has: one runs
// and one waits, and there is a GPU on another node.
func (c *cell) half(t *testing.T, kind string) (runs corev1.Pod, d diagnosis.Diagnosis, f diagnosis.Fix) {
	t.Helper()
	all, d, f := c.most(t, kind, 1)
	return all[0], d, f
}

// most is that with so many GPUs on each of the nodes, and a pod more in the workload.
func (c *cell) most(t *testing.T, kind string, gpus int) (runs []corev1.Pod, d diagnosis.Diagnosis, f diagnosis.Fix) {
	t.Helper()
	pods := int32(gpus + 1)
	for n := range 2 {
		c.gpuNode(t, n+1, func(node *sim.Node) {
			node.GPUs, node.Layouts, node.Config = gpus, nil, "all-disabled"
			for i := range gpus {
				node.MIGOff = append(node.MIGOff, i)
			}
			if n == 0 {
				node.Labels = map[string]string{"pool": c.ns}
			}
		})
	}
	s := spec("", "")
	s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	s.NodeSelector = map[string]string{"pool": c.ns}
	app := "training"
	if kind == "Deployment" {
		app = "serving"
		c.deployment(t, app, pods, s)
	} else {
		s.RestartPolicy = corev1.RestartPolicyNever
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: s}}}
		if _, err := c.Client().BatchV1().Jobs(c.ns).Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	runs = c.running(t, app, gpus)
	d, f = c.finds(t, diagnosis.FixSelector)
	return runs, d, f
}

// stopping is the fix's action with the pods that stop by it.
func stopping(f diagnosis.Fix, pods ...corev1.Pod) diagnosis.Action {
	a := f.Actions[0]
	a.Stops = nil
	for i := range pods {
		a.Stops = append(a.Stops, view.PodTarget(&pods[i]))
	}
	return a
}

// budgetFor is a budget for the pods of an app of which none may go, as the controller that
// counts them says.
func (c *cell) budgetFor(t *testing.T, app string) {
	t.Helper()
	one := intstr.FromInt32(1)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "keep"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	if _, err := c.Client().PolicyV1().PodDisruptionBudgets(c.ns).Create(t.Context(), pdb, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 30*time.Second, "the budget is counted", func() (bool, string) {
		b, err := c.Client().PolicyV1().PodDisruptionBudgets(c.ns).Get(t.Context(), "keep", metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == 1 && b.Status.DisruptionsAllowed == 0, ""
	})
}

// Consent is given to the pods that were shown: where others would stop, fewer, or one that
// a budget protects, just before the write, nothing is written, and that is said.
func TestStopsAreHeldToWhatWasShown(t *testing.T) {
	gone := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "training-gone", UID: types.UID("gone")}}
	for _, kind := range []string{"Job", "Deployment"} {
		t.Run(kind, func(t *testing.T) {
			c := newCell(t)
			runs, d, f := c.half(t, kind)
			gone.Namespace = c.ns
			target := strings.ToLower(kind) + " " + c.ns + "/" + d.Workload.Name
			for _, tc := range []struct {
				name  string
				a     diagnosis.Action
				phase v1alpha1.Phase
				says  string
			}{
				{"nobody was shown", stopping(f), v1alpha1.Stale, "pod " + c.ns + "/" + runs.Name + " of " + target + " runs and would stop, which was not shown"},
				{"more were shown", stopping(f, runs, gone), v1alpha1.Stale, "pod " + c.ns + "/training-gone of " + target + " does not run any more, it was shown among those that stop"},
				{"a budget protects it", stopping(f, runs), v1alpha1.Refused, "a PodDisruptionBudget does not allow that " + c.ns + "/" + runs.Name + " (keep allows 0 more) stops, as it would with a change of " + target},
			} {
				if tc.phase == v1alpha1.Refused {
					c.budgetFor(t, runs.Labels["app"])
				}
				m := c.machine(t, d, f, tc.a)
				if _, err := m.Advance(t.Context()); err != nil {
					t.Fatal(err)
				}
				if st := m.rem.Status; st.Phase != tc.phase || !strings.HasSuffix(st.Message, tc.says) || len(st.Restarted) != 0 {
					t.Errorf("%s: %s: %s, want %s: %s", tc.name, st.Phase, st.Message, tc.phase, tc.says)
				}
			}
			c.untouched(t, runs)
			c.wrote(t, nil)
			if err := c.asMade(t, kind, d.Workload.Name); err != nil {
				t.Error(err)
			}
		})
	}
}

// asMade wants the workload as it was made.
func (c *cell) asMade(t *testing.T, kind, name string) error {
	t.Helper()
	if kind == "Job" {
		j, err := c.Client().BatchV1().Jobs(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && j.Spec.Template.Spec.NodeSelector["pool"] != c.ns {
			err = errors.New("its template was changed")
		}
		return err
	}
	d, err := c.Client().AppsV1().Deployments(c.ns).Get(t.Context(), name, metav1.GetOptions{})
	if err == nil && d.Generation != 1 {
		err = errors.New("its spec was changed")
	}
	return err
}

// Those who were shown stop, once, and are on record as what a plan has stopped.
func TestStopsAreOnRecord(t *testing.T) {
	for _, kind := range []string{"Job", "Deployment"} {
		t.Run(kind, func(t *testing.T) {
			c := newCell(t)
			runs, d, f := c.half(t, kind)
			m := c.machine(t, d, f, stopping(f, runs))
			controlplane.Eventually(t, 30*time.Second, "the plan ends", func() (bool, string) {
				if _, err := m.Advance(t.Context()); err != nil {
					t.Fatal(err)
				}
				return m.Phase().Ended(), m.rem.Status.Progress
			})
			want := []v1alpha1.Pod{{Name: runs.Name, UID: runs.UID}}
			if st := m.rem.Status; st.Phase != v1alpha1.Succeeded || !slices.Equal(st.Restarted, want) || st.Evicted != 0 {
				t.Errorf("%s: %s: %v stopped", st.Phase, st.Message, st.Restarted)
			}
		})
	}
}

// Where a budget would refuse an eviction nobody's workload is made again around it: not by
// an executor, not from a terminal, and it is not offered.
func TestBudgetKeepsARestart(t *testing.T) {
	for _, kind := range []string{"Job", "Deployment"} {
		t.Run(kind, func(t *testing.T) {
			c := newCell(t)
			runs, d, f := c.half(t, kind)
			rem := c.recorded(t, d, f)
			c.budgetFor(t, runs.Labels["app"])
			says := "a PodDisruptionBudget does not allow that " + c.ns + "/" + runs.Name + " (keep allows 0 more) stops"
			if _, err := c.apply(t, d, f); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), says) {
				t.Error(err)
			}
			c.decide(t, rem, "alice", v1alpha1.Approve)
			ended(t, c.carriedOut(t, rem.Name, c.executor), v1alpha1.Refused, says)
			c.untouched(t, runs)
			c.wrote(t, nil)
			if err := c.asMade(t, kind, d.Workload.Name); err != nil {
				t.Error(err)
			}
		})
	}
}

// A plan of a version that names nobody who stops is stale, also before it is asked about.
func TestPlanThatNamesNobody(t *testing.T) {
	c := newCell(t)
	runs, d, f := c.half(t, "Job")
	f.Actions = []diagnosis.Action{stopping(f)}
	f.Plan = diagnosis.PlanHash(d.Incident, d.Pods.Since, f.Actions)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	says := "pod " + c.ns + "/" + runs.Name + " of job " + c.ns + "/training runs and would stop, which was not shown"
	rem = c.carriedOut(t, rem.Name, c.executor)
	ended(t, rem, v1alpha1.Stale, says)
	c.deps.Shown = f.Actions
	if _, err := c.apply(t, d, f); !errors.Is(err, plan.ErrStale) || !strings.Contains(err.Error(), says) {
		t.Error(err)
	}
	c.untouched(t, runs)
	c.wrote(t, nil)
}
