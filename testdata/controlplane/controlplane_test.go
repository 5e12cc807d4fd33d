package controlplane

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
)

func pod(name string, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
}

func TestControlPlane(t *testing.T) {
	var dir string
	t.Run("works", func(t *testing.T) {
		c := Start(t)
		dir = c.dir
		works(t, c)
	})
	if dir == "" {
		return
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", dir, err)
	}
	out, err := exec.Command("ps", "-eo", "args").Output()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("a process was left behind (%v): %s", err, out)
	}
}

func works(t *testing.T, c *ControlPlane) {
	ctx, client := t.Context(), c.Client()
	c.AddNode(t, sim.Node{Name: "n1", Model: "A100-40GB", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
	ns := c.Namespace(t)
	create := func(p *corev1.Pod) {
		t.Helper()
		Eventually(t, 10*time.Second, "pod "+p.Name+" is accepted", func() (bool, string) {
			_, err := client.CoreV1().Pods(ns).Create(ctx, p, metav1.CreateOptions{}) // the ServiceAccount comes a moment after its namespace
			return err == nil, errText(err)
		})
	}
	create(pod("plain", nil))
	create(pod("wide", corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}))
	Eventually(t, 15*time.Second, "the plain pod runs", func() (bool, string) {
		p, err := client.CoreV1().Pods(ns).Get(ctx, "plain", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning, errText(err)
	})
	const want = "0/1 nodes are available: 1 Insufficient nvidia.com/mig-2g.10gb. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	Eventually(t, 10*time.Second, "the scheduler refuses the other", func() (bool, string) {
		p, err := client.CoreV1().Pods(ns).Get(ctx, "wide", metav1.GetOptions{})
		if err != nil || len(p.Status.Conditions) == 0 {
			return false, errText(err)
		}
		return p.Status.Conditions[0].Message == want, p.Status.Conditions[0].Message
	})
	if err := client.PolicyV1().Evictions(ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: ns}}); err != nil {
		t.Fatal(err)
	}
	Eventually(t, 10*time.Second, "the evicted pod is gone", func() (bool, string) {
		_, err := client.CoreV1().Pods(ns).Get(ctx, "plain", metav1.GetOptions{})
		return err != nil, "it is still there"
	})
	evictions := 0
	for _, e := range c.AuditEvents(t) {
		if e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Name == "plain" && e.ResponseStatus.Code == 201 {
			evictions++
		}
	}
	if evictions != 1 {
		t.Errorf("%d evictions in the audit log, want 1", evictions)
	}
	for what, spoil := range map[string]func(*nodeprobe.NodeGeometry){
		"size 0":         func(g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Instances[0].Size = 0 },
		"unknown source": func(g *nodeprobe.NodeGeometry) { g.Report.Source = "guess" },
	} {
		geo := sim.Node{Name: "bad", Model: "A100-40GB", Layouts: [][]sim.Placed{{{Profile: "1g.5gb"}}}}.Geometry(time.Now())
		spoil(geo)
		u, err := sim.Unstructured(geo)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Dynamic().Resource(nodeprobe.Resource).Create(context.Background(), u, metav1.CreateOptions{}); err == nil {
			t.Errorf("a report with %s was accepted", what)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
