package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

var dryRun = []string{metav1.DryRunAll}

// TestAPIServerAccepts sends every rendered object to a real API server, and
// the pods of Deployment and DaemonSet to their namespaces: the service's
// enforces the restricted Pod Security Standard, the probe's what the chart says.
// Only namespaces are written.
func TestAPIServerAccepts(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	cp := controlplane.Start(t)
	client := cp.Client()
	makeNamespace(t, client, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	makeNamespace(t, client, "gpu-operator", nil)
	makeNamespace(t, client, "probes", map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	makeRuntimeClass(t, client)

	send := chart.To(cp)
	for _, name := range slices.Sorted(maps.Keys(variants())) {
		t.Run(name, func(t *testing.T) {
			objs := objects(t, variants()[name])
			for _, o := range objs {
				how := dryRun
				if o.GetKind() == "Namespace" {
					how = nil
				}
				if err := send.Create(t, o, how...); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
			for _, pod := range podsOf(t, objs) {
				if err := createPod(t, client, pod); err != nil {
					t.Errorf("the pod of %s is not admitted: %v", pod.Name, err)
				}
			}
			if !slices.Contains(kinds(objs), "DaemonSet") {
				return
			}
			if err := createPod(t, client, probePodOf(daemonSet(t, variants()[name]))); err != nil {
				t.Errorf("the probe is not admitted: %v", err)
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

func makeRuntimeClass(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}, Handler: "nvidia"}
	if _, err := client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func makeNamespace(t *testing.T, client kubernetes.Interface, name string, labels map[string]string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// podOf is the pod that the ReplicaSet of the Deployment, or the StatefulSet, would create. Its
// ServiceAccount is not there in a dry run, so the namespace's own stands in.
func podOf(t *testing.T, objs []*unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	i := slices.IndexFunc(objs, runsPods)
	if i < 0 {
		t.Fatal("nothing is rendered that runs pods")
	}
	var d appsv1.Deployment // a StatefulSet has its template in the same place
	convert(t, objs[i], &d)
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Name, pod.Namespace = d.Name, d.Namespace
	pod.Spec.ServiceAccountName = "default"
	return pod
}

// probePodOf is the pod that the DaemonSet would create on a node.
func probePodOf(set appsv1.DaemonSet) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = set.Name, set.Namespace
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
