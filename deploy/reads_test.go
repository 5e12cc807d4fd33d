package deploy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// heard notes requests of one kind and how they were answered.
type heard struct {
	next http.RoundTripper
	mu   sync.Mutex
	// configMaps were asked for by this path; refused was answered with 403.
	configMaps, refused []string
}

// RoundTrip implements http.RoundTripper.
func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := h.next.RoundTrip(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && resp.StatusCode == http.StatusForbidden {
		h.refused = append(h.refused, r.Method+" "+r.URL.Path)
	}
	if strings.Contains(r.URL.Path, "/configmaps") {
		h.configMaps = append(h.configMaps, r.URL.Path)
	}
	return resp, err
}

// TestServiceAsksForWhatItMay reads a cluster of 200 GPU nodes with the rights of the
// chart's ServiceAccount: nothing that it asks for is refused, and it asks for the
// ConfigMaps that its Role names once, however often it diagnoses.
func TestServiceAsksForWhatItMay(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	cp := controlplane.StartWith(t, controlplane.Extras{Alone: true})
	makeNamespace(t, cp.Client(), namespace, nil)
	makeNamespace(t, cp.Client(), "gpu-operator", nil)
	send := chart.To(cp)
	for _, o := range objects(t, values{"gpuOperator": values{"migConfigMaps": []any{"default-mig-parted-config", "gpu-150-mig-config"}}}) {
		if slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}, o.GetKind()) && o.GetNamespace() != "unpend-probe" {
			if err := send.Create(t, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"default-mig-parted-config", "gpu-150-mig-config"} {
		if _, err := cp.Client().CoreV1().ConfigMaps("gpu-operator").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gpu-%03d", i), Labels: map[string]string{"nvidia.com/mig.config": "all-1g.5gb"}}}
		if _, err := cp.Client().CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var h heard
	config := accountConfig(t, cp, namespace, "unpend")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { h.next = next; return &h })
	f, err := live.Follow(t.Context(), kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s *cluster.State
	for range 30 {
		s = f.State(t.Context())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff([]string(nil), h.refused); diff != "" {
		t.Error("refused: ", diff)
	}
	slices.Sort(h.configMaps)
	if diff := cmp.Diff([]string{"/api/v1/namespaces/gpu-operator/configmaps/default-mig-parted-config", "/api/v1/namespaces/gpu-operator/configmaps/gpu-150-mig-config",
		"/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"}, h.configMaps); diff != "" {
		t.Error("30 diagnoses asked for ", diff)
	}
	want := map[string]string{"ClusterPolicy": "clusterpolicies.nvidia.com is not installed",
		"ConfigMap": "the right to get 199 of 201 configmaps in namespace gpu-operator is missing, gpu-000-mig-config among them"}
	if diff := cmp.Diff(want, s.Unread); diff != "" || len(s.Nodes) != 200 || len(s.ConfigMaps) != 2 {
		t.Error(len(s.Nodes), len(s.ConfigMaps), diff)
	}
}
