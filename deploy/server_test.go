package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/unpend/unpend/testdata/controlplane"
)

var dryRun = []string{metav1.DryRunAll}

// TestAPIServerAccepts sends every rendered object to a real API server, and
// the pod of the Deployment to a namespace that enforces the restricted Pod
// Security Standard. Nothing is written.
func TestAPIServerAccepts(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	cp := controlplane.Start(t)
	client, dyn := cp.Client(), cp.Dynamic()
	makeNamespace(t, client, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	makeNamespace(t, client, "gpu-operator", nil)

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	for _, name := range slices.Sorted(maps.Keys(variants())) {
		t.Run(name, func(t *testing.T) {
			objs := objects(t, variants()[name])
			for _, o := range objs {
				gvk := o.GroupVersionKind()
				m, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
				if err != nil {
					t.Fatal(err)
				}
				var r dynamic.ResourceInterface = dyn.Resource(m.Resource)
				if ns := o.GetNamespace(); ns != "" {
					r = dyn.Resource(m.Resource).Namespace(ns)
				}
				// Strict: a field that the server does not know is an error.
				_, err = r.Create(t.Context(), o, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
				if err != nil {
					t.Errorf("%s %s: %v", gvk.Kind, o.GetName(), err)
				}
			}
			if err := createPod(t, client, podOf(t, objs)); err != nil {
				t.Errorf("the pod is not admitted: %v", err)
			}
		})
	}

	t.Run("the namespace does enforce", func(t *testing.T) {
		pod := podOf(t, objects(t, nil))
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		if err := createPod(t, client, pod); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
			t.Errorf("a pod that may escalate was answered with %v", err)
		}
	})
}

func makeNamespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// podOf is the pod that the ReplicaSet of the Deployment would create. Its
// ServiceAccount is not there in a dry run, so the namespace's own stands in.
func podOf(t *testing.T, objs []*unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	d := one[appsv1.Deployment](t, objs, "Deployment")
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Name, pod.Namespace = d.Name, d.Namespace
	pod.Spec.ServiceAccountName = "default"
	return pod
}

func createPod(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) error {
	t.Helper()
	// The controller manager makes the default ServiceAccount a moment later.
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: pod.Namespace}}
	if _, err := client.CoreV1().ServiceAccounts(pod.Namespace).Create(t.Context(), sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	_, err := client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: dryRun})
	return err
}
