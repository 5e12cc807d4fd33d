package watcher

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// deafness takes the pods' watch away from a client, which does not notice: the
// connection stands, and nothing comes through it any more.
type deafness struct {
	inner http.RoundTripper
	on    atomic.Bool
}

func (d *deafness) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.inner.RoundTrip(r)
	if err == nil && r.URL.Path == "/api/v1/pods" && strings.Contains(r.URL.RawQuery, "watch=true") {
		resp.Body = &deafBody{resp.Body, d}
	}
	return resp, err
}

type deafBody struct {
	io.ReadCloser
	of *deafness
}

func (b *deafBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for b.of.on.Load() && err == nil {
		n, err = b.ReadCloser.Read(p)
	}
	return n, err
}

func gpuTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}}}}}}
}

// A Deployment that waits is told until all its pods are known, then no more;
// with a watch gone deaf the sweep finds a Job, and what runs is resolved.
func TestOnARealControlPlane(t *testing.T) {
	c := controlplane.Start(t)
	ns := c.Namespace(t)
	c.AddNode(t, sim.Node{Name: "gpu-1", Model: "A100-40GB", Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
	config, deaf := c.Config(), &deafness{}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { deaf.inner = inner; return deaf })
	p := &taken{}
	w, err := New(Options{Client: kubernetes.NewForConfigOrDie(config), Publish: p.publish, Sweep: 2 * time.Second, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	replicas, labels := int32(3), map[string]string{"app": "serve"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "serve"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: gpuTemplate(labels)}}
	if _, err := c.Client().AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	serve := incident.ID(incident.Ref{Kind: "Deployment", Namespace: ns, Name: "serve"}, map[string]string{"nvidia.com/mig-2g.10gb": "1"})
	waits := func(i incident.Incident) bool {
		return i.ID == serve && i.Waiting == 3 && !slices.ContainsFunc(i.Pods, func(r incident.PodRef) bool { return r.Reason != corev1.PodReasonUnschedulable })
	}
	controlplane.Eventually(t, 20*time.Second, "three pods are one incident", func() (bool, string) {
		all := p.told()
		return len(all) > 0 && waits(all[len(all)-1]), fmt.Sprint(all)
	})
	before := p.told()
	deaf.on.Store(true)
	tpl := gpuTemplate(nil)
	tpl.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := c.Client().BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: batchv1.JobSpec{Template: tpl}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	train := incident.ID(incident.Ref{Kind: "Job", Namespace: ns, Name: "train"}, map[string]string{"nvidia.com/mig-2g.10gb": "1"})
	controlplane.Eventually(t, 20*time.Second, "the sweep finds the Job", func() (bool, string) {
		all := p.told()
		return slices.ContainsFunc(all, func(i incident.Incident) bool {
			return i.ID == train && i.Pods[0].Reason == corev1.PodReasonUnschedulable
		}), fmt.Sprint(all)
	})
	if err := c.Client().AppsV1().Deployments(ns).Delete(t.Context(), "serve", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 20*time.Second, "the sweep finds that the Deployment waits no more", func() (bool, string) {
		all := p.told()
		return all[len(all)-1].ID == serve && all[len(all)-1].Resolved, fmt.Sprint(all)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	once(t, p.told(), before, serve, train)
}

// once holds that nothing was told twice, and nothing of what nobody made.
func once(t *testing.T, all, before []incident.Incident, serve, train string) {
	t.Helper()
	ids := map[string]bool{}
	for n, i := range all {
		id, _, err := i.Message()
		if err != nil || ids[id] || i.ID != serve && i.ID != train {
			t.Errorf("%v was told twice, or is nobody's, %v", i, err)
		}
		ids[id] = true
		if n >= len(before) && i.ID == serve && !i.Resolved {
			t.Errorf("%v was told though nothing had changed", i)
		}
	}
}
