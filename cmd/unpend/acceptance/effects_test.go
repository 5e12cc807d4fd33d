package acceptance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// How many random fixes are carried out under real controllers, in short and as a whole.
const (
	fewEffects     = 8
	appliedEffects = 40
)

// On random clusters, with the real scheduler and the real controllers, what was said of a
// fix is what comes of it: how many of all pods run and wait, and who was stopped.
func TestEffectsAreWhatHappens(t *testing.T) {
	needsControlPlane(t)
	const lanes = 2
	applied := controlplane.Of(fewEffects, appliedEffects)
	said := make([]map[string]int, lanes)
	t.Run("lanes", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				c := start(t, controlplane.Extras{})
				classes(t, c)
				said[lane] = map[string]int{}
				n := 0
				for seed := lane; n < applied/lanes && !t.Failed(); seed += lanes {
					t.Run(fmt.Sprint(seed), func(t *testing.T) {
						if kind := (&effects{c: c, r: rand.New(rand.NewPCG(12, uint64(seed)))}).play(t); kind != "" {
							said[lane][kind]++
							n++
						}
					})
				}
			})
		}
	})
	all := map[string]int{}
	for _, one := range said {
		for k, n := range one {
			all[k] += n
		}
	}
	sum := 0
	for _, k := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%s: %d", k, all[k])
		sum += all[k]
	}
	t.Logf("%d random clusters: after a fix of %d kinds of workload and fix as many ran, waited and were stopped as was said, 0 against", sum, len(all))
	if len(all) < applied/5 {
		t.Errorf("%d kinds of workload and fix: too few to tell", len(all))
	}
}

// classes are of who is preempted by nobody, and of who may be evicted for it.
func classes(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	never := corev1.PreemptNever
	for name, value := range map[string]int32{"patient": 0, "low": -10} {
		_, err := c.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &never}, metav1.CreateOptions{})
		must(t, err)
	}
}

// effects is one random cluster.
type effects struct {
	c  *controlplane.ControlPlane
	r  *rand.Rand
	ns string
}

func (e *effects) play(t *testing.T) (applied string) {
	t.Helper()
	e.ns = e.c.Namespace(t)
	kind, made := e.cluster(t)
	if !made {
		return ""
	}
	before, waiting := e.settled(t)
	if len(waiting) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(waiting)), func(name string) bool { return strings.HasPrefix(name, "holders") }) {
		return ""
	}
	d := why(t, "-n", e.ns, "--kubeconfig", e.c.Kubeconfig())
	var proved []diagnosis.Fix
	for _, f := range d.Fixes {
		if f.Automatic && f.Proof.Verdict == diagnosis.Schedules {
			proved = append(proved, f)
		}
	}
	if len(proved) == 0 {
		return ""
	}
	f := proved[e.r.IntN(len(proved))]
	code, out, errs := call(t, "approve", fmt.Sprintf("%s#%d", d.Incident, f.ID), "--plan", f.Plan, "--yes", "--kubeconfig", e.c.Kubeconfig(), "-n", e.ns)
	if code != exitDone && f.Effect.Runs > 0 {
		t.Fatalf("%s %q (%s): exit %d: %s%s", kind, f.Title, effectText(f), code, out, errs)
	}
	named := map[string]bool{}
	for _, p := range slices.Concat(f.Cost.Evictions, f.Cost.Restarts) {
		named[p.Name] = true
	}
	controlplane.Eventually(t, 30*time.Second, fmt.Sprintf("%s: what was said of %q", kind, f.Title), func() (bool, string) {
		running, waits := e.pods(t)
		stopped := map[string]bool{}
		for uid, name := range before {
			if running[uid] == "" {
				stopped[name] = true
			}
		}
		return len(waits) == f.Effect.WaitingAfter && len(running) == len(before)+f.Effect.Runs-len(f.Effect.ThenWait) && maps.Equal(stopped, named),
			fmt.Sprintf("ran %v, waited %v; running %v, waiting %v, stopped %v; said: %s, stops %v", before, waiting, running, waits, stopped, effectText(f), named)
	})
	return fmt.Sprint(kind, " ", f.Kinds)
}

// cluster makes nodes, pods that hold some of them, and a workload that wants more.
func (e *effects) cluster(t *testing.T) (kind string, made bool) {
	t.Helper()
	free := int64(0)
	for i := range 2 + e.r.IntN(2) {
		n := gpuNode(fmt.Sprint("gpu-", i+1), 1+e.r.Int64N(3))
		n.Labels["pool"] = []string{"a", "a", "b"}[e.r.IntN(3)]
		gpus := n.Status.Capacity["nvidia.com/gpu"]
		if e.r.IntN(5) < 2 {
			n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}
		} else {
			free += gpus.Value()
		}
		e.c.AddNodeObject(t, n)
	}
	if holders := min(free, e.r.Int64N(3)); holders > 0 {
		p := asksGPUs(1)
		p.Labels = map[string]string{"app": "holders"}
		p.Spec.PriorityClassName = []string{"low", "patient"}[e.r.IntN(2)]
		e.deployment(t, "holders", int32(holders), p, appsv1.DeploymentStrategy{})
		if _, waiting := e.settled(t); len(waiting) > 0 {
			return "", false
		}
	}
	p := asksGPUs(1 + e.r.Int64N(2))
	p.Spec.PriorityClassName = "patient"
	if e.r.IntN(5) < 2 {
		p = inPool(p, "a")
	}
	replicas := 2 + e.r.Int32N(3)
	switch e.r.IntN(6) {
	case 0, 1:
		jobOf(replicas, p)(t, e.c, e.ns)
		return "Job", true
	case 2:
		setOf(replicas, p)(t, e.c, e.ns)
		return "StatefulSet", true
	case 3:
		e.deployment(t, "web", replicas, p, appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})
		return "Deployment recreated", true
	}
	surge, below := intstr.FromInt32(e.r.Int32N(3)), intstr.FromInt32(e.r.Int32N(2))
	if surge.IntVal == 0 {
		below = intstr.FromInt32(1)
	}
	e.deployment(t, "web", replicas, p, appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &below}})
	return "Deployment", true
}

func (e *effects) deployment(t *testing.T, name string, n int32, template corev1.PodTemplateSpec, strategy appsv1.DeploymentStrategy) {
	t.Helper()
	_, err := e.c.Client().AppsV1().Deployments(e.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Strategy: strategy, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}, metav1.CreateOptions{})
	must(t, err)
	after(t, func(ctx context.Context) error {
		return e.c.Client().AppsV1().Deployments(e.ns).Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// settled waits until every pod runs or was refused, and all that are wanted are made.
func (e *effects) settled(t *testing.T) (running, waiting map[string]string) {
	t.Helper()
	last := ""
	controlplane.Eventually(t, time.Minute, "all pods run or wait", func() (bool, string) {
		list, err := e.c.Client().CoreV1().Pods(e.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		open := 0
		for _, p := range list.Items {
			refused := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
			})
			if p.Status.Phase != corev1.PodRunning && !refused {
				open++
			}
		}
		now := fmt.Sprint(len(list.Items), list.ResourceVersion)
		still := now == last && open == 0 && len(list.Items) > 0
		last = now
		return still, fmt.Sprintf("%d of %d pods are on their way", open, len(list.Items))
	})
	return e.pods(t)
}

func (e *effects) pods(t *testing.T) (running, waiting map[string]string) {
	t.Helper()
	return podsOf(t, e.c, e.ns)
}
