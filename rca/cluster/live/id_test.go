package live

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The cluster is told by what lives as long as it does; without the right to read that, the
// service says which right it is, and what is not known is never a cluster of its own.
func TestClusterID(t *testing.T) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "8b3f8f7e-0c1d-4a52-9f0a-3a1d5b1f2c4e"}}
	if id, err := ID(t.Context(), fake.NewClientset(system)); id != string(system.UID) || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	refuses := func(err error) *fake.Clientset {
		c := fake.NewClientset(system)
		c.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		return c
	}
	namespaces := corev1.Resource("namespaces")
	for name, tc := range map[string]struct {
		client *fake.Clientset
		says   string
	}{
		"no right": {refuses(apierrors.NewForbidden(namespaces, "kube-system", errors.New("RBAC"))), "the right to get namespaces (kube-system) is missing"},
		"away":     {refuses(errors.New("connection refused")), "ask which cluster this is: connection refused"},
		"no uid":   {fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}), "has no uid"},
	} {
		if id, err := ID(t.Context(), tc.client); id != "" || err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}
