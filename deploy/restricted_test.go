package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/testdata/controlplane"
)

// S19: every pod but the probe's is admitted by a namespace that enforces the
// restricted Pod Security Standard: asked for in every variant, and made by the
// real controller where the chart is installed.
func allRestricted(t *testing.T, cp *controlplane.ControlPlane) tally {
	var n tally
	for _, name := range slices.Sorted(maps.Keys(variants())) {
		pods := podsOf(t, objects(t, variants()[name]))
		want := 1 + len(executorDeployments(t, variants()[name]))
		if variants()[name]["layout"] == "separate" {
			want++
		}
		if len(pods) != want {
			t.Errorf("%s: %d pods, want %d", name, len(pods), want)
		}
		for _, pod := range pods {
			n.check(t, name+", "+pod.Name, answer(createPod(t, cp.Client(), pod)), "yes")
		}
	}
	for _, name := range []string{"unpend", executor} {
		controlplane.Eventually(t, 20*time.Second, "the pod of "+name, func() (bool, string) {
			list, err := cp.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
			return err == nil && len(list.Items) == 1, fmt.Sprint(err)
		})
		n.held++
	}
	may := podsOf(t, executorOnly(t, approve()))[0]
	may.Spec.Containers[0].SecurityContext.Capabilities = nil
	n.check(t, "one with capabilities", fmt.Sprint(answer(createPod(t, cp.Client(), may)) == "yes"), "false")
	return n
}

// runsPods says whether an object is one of those that stay.
func runsPods(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Deployment" || o.GetKind() == "StatefulSet"
}

// podsOf are the pods of all Deployments and StatefulSets that are rendered.
func podsOf(t *testing.T, objs []*unstructured.Unstructured) []*corev1.Pod {
	t.Helper()
	var out []*corev1.Pod
	for _, o := range objs {
		if runsPods(o) {
			out = append(out, podOf(t, []*unstructured.Unstructured{o}))
		}
	}
	return out
}

func executorDeployments(t *testing.T, v values) []appsv1.Deployment {
	t.Helper()
	if v["mode"] != "approve" {
		return nil
	}
	return []appsv1.Deployment{executorsDeployment(t, v)}
}
