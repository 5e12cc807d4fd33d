package live

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

var policies = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}

// customs serves the custom kinds; the GPU Operator is not installed.
func customs() dynamic.Interface {
	geo := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "unpend.dev/v1alpha1", "kind": "NodeGeometry", "metadata": map[string]any{"name": "gpu-1"},
		"report": map[string]any{"observedAt": "2026-01-02T03:04:05Z", "gpus": []any{map[string]any{"index": int64(3)}}}}}
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{nodeprobe.Resource: "NodeGeometryList", policies: "ClusterPolicyList"}, geo)
	d.PrependReactor("*", "clusterpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(policies.GroupResource(), "")
	})
	return d
}

func smallCluster() *fake.Clientset {
	pod := func(ns string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "A", Value: "secret"}}}}}}
	}
	config := func(ns, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	return fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"nvidia.com/mig.config": "x"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-operator"}}, pod("ml"), pod("other"),
		config("gpu-operator", "gpu-1-mig-config"), config("gpu-operator", "not-asked-for"), config("ml", "default-mig-parted-config"))
}

// forbid refuses to read a resource: at all, or unless a namespace is named.
func forbid(c *fake.Clientset, resource string, unlessNamed bool) {
	for _, verb := range []string{"get", "list"} {
		c.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			if unlessNamed && a.GetNamespace() != "" {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
		})
	}
}

func read(t *testing.T, c *fake.Clientset, namespace string) *cluster.State {
	t.Helper()
	s, err := ReadFor(t.Context(), c, customs(), time.Now, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadTakesTheClusterIn(t *testing.T) {
	s := read(t, smallCluster(), "")
	if len(s.Nodes) != 1 || len(s.Pods) != 2 || !s.Live || len(s.Pods[0].Spec.Containers[0].Env) > 0 {
		t.Errorf("nodes %v, pods %v, live %v", s.Nodes, s.Pods, s.Live)
	}
	if g := s.Geometries["gpu-1"]; g == nil || g.Report.GPUs[0].Index != 3 {
		t.Errorf("geometry %+v", g)
	}
	if len(s.ConfigMaps) != 1 || s.ConfigMaps[0].Name != "gpu-1-mig-config" {
		t.Errorf("config maps %v", s.ConfigMaps)
	}
	if len(s.Unread) != 1 || s.Unread["ClusterPolicy"] != "clusterpolicies.nvidia.com is not installed" {
		t.Errorf("unread %v", s.Unread)
	}
}

func TestMissingRightsAreNamed(t *testing.T) {
	c := smallCluster()
	forbid(c, "poddisruptionbudgets", false)
	forbid(c, "configmaps", false)
	s := read(t, c, "ml")
	if len(s.Nodes) != 1 || len(s.Pods) != 2 {
		t.Errorf("nodes %v, pods %v", s.Nodes, s.Pods)
	}
	if got := s.Unread["PodDisruptionBudget"]; got != "the right to list poddisruptionbudgets.policy is missing" {
		t.Errorf("unread: %q", got)
	}
	if got := s.Unread["ConfigMap"]; got != "the right to get configmaps in namespace gpu-operator is missing" {
		t.Errorf("unread: %q", got)
	}
}

// Who may only see one namespace gets an answer about it, and is told that
// it rests on that one.
func TestOneNamespaceWhereAllAreRefused(t *testing.T) {
	c := smallCluster()
	forbid(c, "pods", true)
	forbid(c, "nodes", false)
	s := read(t, c, "ml")
	if len(s.Pods) != 1 || s.Pods[0].Namespace != "ml" || len(s.Nodes) != 0 {
		t.Errorf("pods %v, nodes %v", s.Pods, s.Nodes)
	}
	if got := s.Unread["Pod"]; got != "the right to list pods is missing, so only namespace ml is read" {
		t.Errorf("unread: %q", got)
	}
	if got := s.Unread["Node"]; got != "the right to list nodes is missing" {
		t.Errorf("unread: %q", got)
	}
	all := read(t, c, "")
	if got := all.Unread["Pod"]; len(all.Pods) != 0 || got != "the right to list pods is missing" {
		t.Errorf("pods %v, unread %q", all.Pods, got)
	}
}

// An error that passes leaves nothing unread.
func TestPassingErrorsAreTriedAgain(t *testing.T) {
	c := smallCluster()
	var asked atomic.Int32
	c.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if asked.Add(1) > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewInternalError(errors.New("etcd has no leader"))
	})
	s := read(t, c, "")
	if len(s.Pods) != 2 || s.Unread["Pod"] != "" || asked.Load() < 2 {
		t.Errorf("pods %v, unread %q, asked %d times", s.Pods, s.Unread["Pod"], asked.Load())
	}
}

// An API server that may not be asked for its version is still read; one that
// refuses the credentials is an error.
func TestVersion(t *testing.T) {
	answer := func(code int) *fake.Clientset {
		c := smallCluster()
		c.PrependReactor("get", "version", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{}, "", "", 0, true)
		})
		return c
	}
	if s := read(t, answer(http.StatusForbidden), ""); len(s.Pods) != 2 {
		t.Errorf("pods %v", s.Pods)
	}
	_, err := Read(t.Context(), answer(http.StatusUnauthorized), customs(), time.Now)
	if !apierrors.IsUnauthorized(err) || !strings.HasPrefix(err.Error(), "ask the API server for its version: ") {
		t.Errorf("got %v", err)
	}
}
