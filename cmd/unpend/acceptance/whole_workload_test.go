package acceptance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// whole is a workload of which some pods run and some wait, made by its controller.
type whole struct {
	nodes []*corev1.Node
	make  func(*testing.T, *controlplane.ControlPlane, string)
	// runs and waits are how many of its pods do so before.
	runs, waits int
	apply       wantFix // what is approved, whichever place it has
	// then is done once some run and some wait; byHand: approving is refused, and a person does
	// what the commands say.
	then   func(*testing.T, *controlplane.ControlPlane, string)
	byHand bool
	again  maker // and has it made again, from a manifest of their own
}

// What was said of a fix is what comes of it: how many of all the workload's pods run and
// wait, which of them were stopped, and that nobody else was.
func TestWholeWorkloads(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	team := corev1.Taint{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}
	for name, w := range map[string]whole{
		"job-toleration": {nodes: []*corev1.Node{gpuNode("gpu-1", 1), gpuNode("gpu-2", 1, team)}, make: jobOf(2, asksGPUs(1)), runs: 1, waits: 1,
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.AddToleration}, Verdict: diagnosis.Schedules, Risk: diagnosis.MediumRisk, Restarts: new(0), Effect: "1/1 1>0"}},
		"job-selector": {nodes: []*corev1.Node{inPoolOf("a", gpuNode("gpu-1", 1)), inPoolOf("b", gpuNode("gpu-2", 2))}, make: jobOf(2, inPool(asksGPUs(1), "a")), runs: 1, waits: 1,
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.FixSelector}, Verdict: diagnosis.Schedules, Risk: diagnosis.HighRisk, Restarts: new(1), Effect: "1/1 1>0"}},
		"job-request": {nodes: []*corev1.Node{gpuNode("gpu-1", 2), gpuNode("gpu-2", 1)}, make: jobOf(2, asksGPUs(2)), runs: 1, waits: 1,
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.ChangeRequest}, Verdict: diagnosis.Schedules, Risk: diagnosis.HighRisk, Restarts: new(1), Effect: "1/1 1>0"}},
		"deployment-surge": {nodes: []*corev1.Node{gpuNode("gpu-1", 2), gpuNode("gpu-2", 4, team)}, make: deploymentOf(3, asksGPUs(1)), runs: 2, waits: 1,
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.AddToleration}, Verdict: diagnosis.Schedules, Risk: diagnosis.MediumRisk, Restarts: new(2), Effect: "1/1 1>0"}},
		"deployment-full": {nodes: []*corev1.Node{gpuNode("gpu-1", 2), gpuNode("gpu-2", 1, team)}, make: deploymentOf(3, asksGPUs(1)), runs: 2, waits: 1,
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.AddToleration}, Verdict: diagnosis.Schedules, Risk: diagnosis.MediumRisk, Restarts: new(0), Effect: "1/1 1>1"}},
		"statefulset-parallel": {nodes: []*corev1.Node{gpuNode("gpu-1", 1), gpuNode("gpu-2", 2, team)}, make: setOf(2, asksGPUs(1)), runs: 1, waits: 1,
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.AddToleration}, Verdict: diagnosis.Schedules, Risk: diagnosis.MediumRisk, Restarts: new(1), Effect: "1/1 1>0"}},
	} {
		t.Run(name, func(t *testing.T) { w.play(t, c) })
	}
}

func (w whole) play(t *testing.T, c *controlplane.ControlPlane) {
	ns := c.Namespace(t)
	for _, n := range w.nodes {
		c.AddNodeObject(t, n)
	}
	w.make(t, c, ns)
	pods := func() (running, waiting map[string]string) { return podsOf(t, c, ns) }
	var before map[string]string
	controlplane.Eventually(t, 30*time.Second, "some run and some wait", func() (bool, string) {
		running, waiting := pods()
		before = running
		return len(running) == w.runs && len(waiting) == w.waits, fmt.Sprint(running, waiting)
	})
	if w.then != nil {
		w.then(t, c, ns)
	}
	var d diagnosis.Diagnosis
	controlplane.Eventually(t, 20*time.Second, "the scheduler has refused all that wait", func() (bool, string) {
		d = why(t, "-n", ns, "--kubeconfig", c.Kubeconfig())
		return d.Pods.Waiting == w.waits, fmt.Sprintf("%+v", d.Pods)
	})
	at := slices.IndexFunc(d.Fixes, w.apply.is)
	if at < 0 {
		for _, f := range d.Fixes {
			t.Errorf("%v %q: %s, risk %s, effect %s, stops %v %v", f.Kinds, f.Title, f.Proof.Verdict, f.Risk, effectText(f), f.Cost.Evictions, f.Cost.Restarts)
		}
		t.Fatalf("want %+v", w.apply)
	}
	f := d.Fixes[at]
	if w.byHand {
		isLeftToPeople(t, c, d.Incident, f, ns)
		if w.again != nil {
			w.again(t, c, ns)
		}
	} else if code, out, errs := call(t, "approve", fmt.Sprintf("%s#%d", d.Incident, f.ID), "--plan", f.Plan, "--yes", "--kubeconfig", c.Kubeconfig(), "-n", ns); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	named := map[string]bool{}
	for _, p := range slices.Concat(f.Cost.Evictions, f.Cost.Restarts) {
		named[p.Name] = true
	}
	controlplane.Eventually(t, time.Minute, "what was said is so", func() (bool, string) {
		running, waiting := pods()
		stopped := map[string]bool{}
		for uid, name := range before {
			if running[uid] == "" {
				stopped[name] = true
			}
		}
		return len(waiting) == f.Effect.WaitingAfter && len(running) == w.runs+f.Effect.Runs-len(f.Effect.ThenWait) && maps.Equal(stopped, named),
			fmt.Sprintf("running %v, waiting %v, stopped %v; said: %s, stops %v", running, waiting, stopped, effectText(f), named)
	})
}

// podsOf are the names of a namespace's pods by uid: those that run, and those without a node.
func podsOf(t *testing.T, c *controlplane.ControlPlane, ns string) (running, waiting map[string]string) {
	t.Helper()
	running, waiting = map[string]string{}, map[string]string{}
	list, err := c.Client().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, p := range list.Items {
		switch {
		case p.DeletionTimestamp != nil:
		case p.Spec.NodeName == "":
			waiting[string(p.UID)] = p.Name
		case p.Status.Phase == corev1.PodRunning:
			running[string(p.UID)] = p.Name
		}
	}
	return running, waiting
}

func gpuNode(name string, gpus int64, taints ...corev1.Taint) *corev1.Node {
	has := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}, Labels: map[string]string{corev1.LabelHostname: name, "nvidia.com/gpu.present": "true"}},
		Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{Allocatable: has, Capacity: has}}
}

func asksGPUs(n int64) corev1.PodTemplateSpec {
	grace := int64(0)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "whole"}}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}}}}}}
}

func inPoolOf(pool string, n *corev1.Node) *corev1.Node {
	n.Labels["pool"] = pool
	return n
}

func inPool(p corev1.PodTemplateSpec, pool string) corev1.PodTemplateSpec {
	p.Spec.NodeSelector = map[string]string{"pool": pool}
	return p
}

type maker = func(*testing.T, *controlplane.ControlPlane, string)

func jobOf(n int32, template corev1.PodTemplateSpec) maker {
	return func(t *testing.T, c *controlplane.ControlPlane, ns string) {
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := c.Client().BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: batchv1.JobSpec{Parallelism: &n, Completions: &n, Template: template}}, metav1.CreateOptions{})
		must(t, err)
		background := metav1.DeletePropagationBackground
		after(t, func(ctx context.Context) error {
			return c.Client().BatchV1().Jobs(ns).Delete(ctx, "train", metav1.DeleteOptions{PropagationPolicy: &background})
		})
	}
}

func deploymentOf(n int32, template corev1.PodTemplateSpec) maker {
	return func(t *testing.T, c *controlplane.ControlPlane, ns string) {
		_, err := c.Client().AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}, metav1.CreateOptions{})
		must(t, err)
		after(t, func(ctx context.Context) error {
			return c.Client().AppsV1().Deployments(ns).Delete(ctx, "web", metav1.DeleteOptions{})
		})
	}
}

func setOf(n int32, template corev1.PodTemplateSpec) maker {
	return setAs(n, func(s *appsv1.StatefulSet) { s.Spec.Selector.MatchLabels, s.Spec.Template = template.Labels, template })
}

// setAs is a StatefulSet that makes its pods at the same time, edited; each asks for a GPU.
func setAs(n int32, edit func(*appsv1.StatefulSet)) maker {
	return func(t *testing.T, c *controlplane.ControlPlane, ns string) {
		template := asksGPUs(1)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "shard"},
			Spec: appsv1.StatefulSetSpec{Replicas: &n, ServiceName: "shard", PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
		edit(set)
		_, err := c.Client().AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{})
		must(t, err)
		after(t, func(ctx context.Context) error {
			return c.Client().AppsV1().StatefulSets(ns).Delete(ctx, "shard", metav1.DeleteOptions{})
		})
	}
}

// after removes what a case has made, so that the next one has the cluster for itself.
func after(t *testing.T, remove func(context.Context) error) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := remove(ctx); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Error(err)
		}
	})
}
