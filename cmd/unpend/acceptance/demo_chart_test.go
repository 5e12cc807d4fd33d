package acceptance

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The demo chart on one A100 as all-1g: as it is there is no room side by side, with two pods left
// only the layout is in the way, and the answers say which is which. The best fix is approved
// in the end, and its pod runs.
func TestDemoChartSaysWhichIsWhich(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	ctx, cancel := context.WithCancel(t.Context())
	stack := sim.New(c.Client(), c.Dynamic(), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 500 * time.Millisecond})
	ended := make(chan error, 1)
	go func() { ended <- stack.Run(ctx) }()
	defer func() {
		cancel()
		must(t, <-ended)
	}()
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	to, objs := chart.To(c), chart.Release{Chart: "mig-demo", Namespace: "default"}.Objects(t)
	for _, o := range objs {
		if o.GetKind() == "Deployment" {
			must(t, to.Create(t, o))
		}
	}
	waitHolders(t, c)
	for _, o := range objs {
		if o.GetKind() == "Job" {
			must(t, to.Create(t, o))
		}
	}
	waitRefused(t, c, "")
	first := why(t, "-A", "--kubeconfig", c.Kubeconfig())
	if id := first.Causes[0].ID; id != diagnosis.MIGFragmented {
		t.Errorf("with the fragmenter it is %s", id)
	}
	for name, replicas := range map[string]int32{"fragmenter": 0, "inference": 2} {
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		if _, err := c.Client().AppsV1().Deployments("default").UpdateScale(t.Context(), name, scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	controlplane.Eventually(t, time.Minute, "only the layout is in the way", func() (bool, string) {
		pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
		if err != nil || len(pods.Items) != 2 {
			return false, "more pods run"
		}
		d := why(t, "-A", "--kubeconfig", c.Kubeconfig())
		return d.Causes[0].ID == diagnosis.MIGLayoutMismatch, string(d.Causes[0].ID)
	})
	d := why(t, "-A", "--kubeconfig", c.Kubeconfig())
	if code, out, errs := call(t, "approve", d.Incident+"#1", "--yes", "--kubeconfig", c.Kubeconfig()); code != 0 || !strings.Contains(out, "runs (") {
		t.Errorf("%s: exit %d: %s%s", d.Fixes[0].Title, code, out, errs)
	}
}
