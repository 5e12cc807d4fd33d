package acceptance

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher"
	"github.com/unpend/unpend/watcher/incident"
)

// heard is every incident that a watcher published.
type heard struct {
	mu  sync.Mutex
	all []incident.Incident
}

func (h *heard) publish(_ context.Context, i incident.Incident) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, i)
	return nil
}

// last is the newest word on an incident.
func (h *heard) last(id string) (incident.Incident, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range slices.Backward(h.all) {
		if i.ID == id {
			return i, true
		}
	}
	return incident.Incident{}, false
}

// listen runs a watcher whose only signals are its informers' until the test ends.
func listen(t *testing.T, c *controlplane.ControlPlane) *heard {
	t.Helper()
	h := &heard{}
	w, err := watcher.New(watcher.Options{Client: c.Client(), Publish: h.publish, Sweep: time.Hour, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return h
}

// A quota refuses a Deployment's and a Job's pods: nothing is scheduled, nothing is
// pending, and both are found. The quota is raised for the Deployment as approved, its
// pods run, and its incident is resolved.
func TestQuotaRefusesLive(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	quotas := c.Client().CoreV1().ResourceQuotas("default")
	limits := func(name, resourceName, scope string) {
		t.Helper()
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse("0")}}}
		if scope != "" {
			q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScope(scope)}
		}
		if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		controlplane.Eventually(t, 20*time.Second, "quota "+name+" is in force", func() (bool, string) {
			got, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && len(got.Status.Used) > 0, "no status"
		})
	}
	limits("mig", "requests.nvidia.com/mig-1g.5gb", "")
	limits("other", "requests.nvidia.com/mig-2g.10gb", "")
	limits("ending", "pods", string(corev1.ResourceQuotaScopeTerminating))
	h := listen(t, c)
	deploy("serving", "1g.5gb", 2)(t, c)
	madeJob(t, c, "2g.10gb", "")

	id := func(kind, name, profile string) string {
		return incident.ID(incident.Ref{Kind: kind, Namespace: "default", Name: name}, map[string]string{"nvidia.com/mig-" + profile: "1"})
	}
	serving, training := id("Deployment", "serving", "1g.5gb"), id("Job", "training", "2g.10gb")
	for _, want := range []struct {
		id      string
		missing int
	}{{serving, 2}, {training, 1}} {
		controlplane.Eventually(t, 30*time.Second, "the watcher tells "+want.id, func() (bool, string) {
			i, ok := h.last(want.id)
			return ok && !i.Resolved && i.Missing == want.missing && i.Waiting == want.missing && len(i.Pods) == 0, fmt.Sprintf("%+v", i)
		})
	}
	code, out, errs := call(t, "why", "-A", "-o", "name", "--kubeconfig", c.Kubeconfig())
	names := strings.Fields(out)
	for i, name := range names {
		names[i] = name[:strings.LastIndexByte(name, '.')] // the cluster that it is of
	}
	slices.Sort(names)
	wants := []string{"incident.unpend.dev/" + serving, "incident.unpend.dev/" + training}
	slices.Sort(wants)
	if code != 0 || !slices.Equal(names, wants) {
		t.Fatalf("exit %d: %q, %s; want %q", code, names, errs, wants)
	}
	d := why(t, "deployment/serving", "-n", "default", "--kubeconfig", c.Kubeconfig())
	if d.Incident != serving || d.Causes[0].ID != diagnosis.QuotaExceeded || d.Causes[0].Certainty != diagnosis.Proven || len(d.Causes) != 1 ||
		!strings.HasPrefix(d.Causes[0].Says, "quota mig refuses it: 0 of 0 requests.nvidia.com/mig-1g.5gb used, 1 asked") {
		t.Errorf("%s: %+v", d.Incident, d.Causes)
	}
	if f := d.Fixes[0]; !slices.Equal(f.Kinds, []diagnosis.FixKind{diagnosis.RaiseQuota}) || f.Proof.Verdict != diagnosis.Schedules || f.Proof.Node != "gpu-1" {
		t.Fatalf("first fix %+v", f)
	}
	if d := why(t, "job/training", "-n", "default", "--kubeconfig", c.Kubeconfig()); d.Incident != training || !slices.ContainsFunc(d.Causes, func(c diagnosis.Cause) bool {
		return c.ID == diagnosis.QuotaExceeded && c.Certainty == diagnosis.Proven
	}) {
		t.Errorf("%s: %+v", d.Incident, d.Causes)
	}
	if code, out, errs := call(t, "approve", serving+"#1", "--yes", "--kubeconfig", c.Kubeconfig()); code != 0 || !strings.Contains(out, "runs (") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	controlplane.Eventually(t, 30*time.Second, "the Deployment's incident is resolved", func() (bool, string) {
		i, ok := h.last(serving)
		return ok && i.Resolved, fmt.Sprintf("%+v", i)
	})
	if i, _ := h.last(training); i.Resolved || i.Missing != 1 {
		t.Errorf("the Job's incident: %+v", i)
	}
	other, err := quotas.Get(t.Context(), "other", metav1.GetOptions{})
	if n := other.Spec.Hard["requests.nvidia.com/mig-2g.10gb"]; err != nil || !n.IsZero() {
		t.Errorf("the other quota allows %s, %v", n.String(), err)
	}
}
