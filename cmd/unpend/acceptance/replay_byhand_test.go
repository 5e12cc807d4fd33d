package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// byHand does what the first fix's commands say, as a person would with kubectl: what
// is proved to schedule has to run then too.
func (r *replay) byHand(t *testing.T, d diagnosis.Diagnosis) {
	t.Helper()
	for _, command := range d.Fixes[0].Commands {
		var name string
		if document, ok := strings.CutPrefix(command, "kubectl replace --force -f - <<<'"); ok {
			r.replace(t, strings.ReplaceAll(strings.TrimSuffix(document, "'"), `'\''`, "'"))
			continue
		}
		if n, err := fmt.Sscanf(command, "kubectl -n "+d.Workload.Namespace+" get pod %s -o yaml > pod.yaml && kubectl replace --force -f pod.yaml", &name); n != 1 || err != nil {
			t.Fatalf("nobody here knows how to do %q", command)
		}
		r.remake(t, d.Workload.Namespace, name)
	}
	pods := r.c.Client().CoreV1().Pods(d.Workload.Namespace)
	controlplane.Eventually(t, 30*time.Second, "the pod runs on "+d.Fixes[0].Proof.Node, func() (bool, string) {
		p, err := pods.Get(t.Context(), d.Pods.Names[0], metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == d.Fixes[0].Proof.Node, fmt.Sprintf("%+v, %v", p.Status, err)
	})
}

// replace deletes a claim or a template, and makes it again.
func (r *replay) replace(t *testing.T, document string) {
	t.Helper()
	var u unstructured.Unstructured
	must(t, u.UnmarshalJSON([]byte(document)))
	objects := r.c.Dynamic().Resource(schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: strings.ToLower(u.GetKind()) + "s"}).Namespace(u.GetNamespace())
	must(t, objects.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	r.gone(t, u.GetName(), func(ctx context.Context) error {
		_, err := objects.Get(ctx, u.GetName(), metav1.GetOptions{})
		return err
	})
	_, err := objects.Create(t.Context(), &u, metav1.CreateOptions{})
	must(t, err)
}

// remake deletes a pod, and makes it again.
func (r *replay) remake(t *testing.T, namespace, name string) {
	t.Helper()
	pods := r.c.Client().CoreV1().Pods(namespace)
	p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	p = strip(p)
	p.Status = corev1.PodStatus{}
	now := int64(0)
	must(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	r.gone(t, name, func(ctx context.Context) error {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	_, err = pods.Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
}

func (r *replay) gone(t *testing.T, name string, get func(context.Context) error) {
	t.Helper()
	controlplane.Eventually(t, 20*time.Second, name+" is gone", func() (bool, string) {
		err := get(t.Context())
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}
