package world

import (
	"context"
	"log/slog"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func deployment(name, resourceName string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse("1")}}}}}},
	}}
}

func TestWorldRunsTheMainJob(t *testing.T) {
	t.Parallel() // it waits
	ctx := t.Context()
	w, err := New(ctx, Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"gpu-1", "gpu-2"} {
		n := sim.Node{Name: name, Model: "A100-40GB", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}, Config: "all-1g.5gb"}
		if err := w.AddNode(ctx, n, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Client().AppsV1().Deployments("ml").Create(ctx, deployment("inference", "nvidia.com/mig-1g.5gb", 6), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "six run", func() bool { return running(t, w) == 6 })
	if _, err := w.Client().AppsV1().Deployments("ml").Create(ctx, deployment("training", "nvidia.com/mig-2g.10gb", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var found []diagnosis.Diagnosis
	eventually(t, "a finding", func() bool {
		st, err := live.Read(ctx, w.Client(), w.Dynamic(), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if found, err = rca.Diagnose(ctx, st, rca.Options{}); err != nil {
			t.Fatal(err)
		}
		return len(found) == 1 && len(found[0].Nodes) == 2 && found[0].Causes[0].Certainty == diagnosis.Proven
	})
	d := found[0]
	if d.Causes[0].ID != diagnosis.MIGLayoutMismatch || d.Fixes[0].Kind != diagnosis.RepartitionGPU || len(d.Fixes[0].Cost.Evictions) != fewest(t, w) {
		t.Errorf("causes %+v, first fix %+v", d.Causes, d.Fixes[0])
	}
	deps := executor.Deps{Client: w.Client(), Dynamic: w.Dynamic(), Now: time.Now, Logger: slog.New(slog.DiscardHandler), Poll: 10 * time.Millisecond}
	var steps []string
	out, err := executor.Apply(ctx, deps, d.Incident, 1, d.Fixes[0].Plan, func(s journal.Progress) {
		if s.Done {
			steps = append(steps, s.Text)
		}
		if s.N > s.Of {
			t.Errorf("step %d of %d", s.N, s.Of)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(steps, out.Pod, out.Ended.Sub(out.Started))
	eventually(t, "all seven run", func() bool { return running(t, w) == 7 })
	for _, name := range []string{"gpu-1", "gpu-2"} {
		n, err := w.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
			t.Errorf("node %s: unschedulable %v, annotations %v, %v", name, n.Spec.Unschedulable, n.Annotations, err)
		}
	}
}

// fewest is how many pods the node has that has the fewer.
func fewest(t *testing.T, w *World) int {
	t.Helper()
	pods, err := w.Client().CoreV1().Pods("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]int{}
	for _, p := range pods.Items {
		on[p.Spec.NodeName]++
	}
	return min(on["gpu-1"], on["gpu-2"])
}

func running(t *testing.T, w *World) int {
	t.Helper()
	pods, err := w.Client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}
