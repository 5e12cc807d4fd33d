package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// isKubectls says whether an object is there for what kubectl shows.
func isKubectls(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GetName(), "-kubectl") || strings.HasSuffix(o.GetName(), "-answers")
}

func kubectlOnly(t testing.TB, events, annotations bool) []*unstructured.Unstructured {
	t.Helper()
	v := values{"kubectl": values{"events": events, "annotations": annotations}}
	return slices.DeleteFunc(objects(t, v), func(o *unstructured.Unstructured) bool { return !isKubectls(o) })
}

// Events and answers bring the rights that they take, each its own, and without them there
// are none; what may be patched of pods and workloads is fenced by a policy.
func TestRightsOfWhatKubectlShows(t *testing.T) {
	for file, with := range map[string]struct {
		events, annotations bool
		kinds               []string
	}{
		"":                                     {false, false, nil},
		"clusterrole-kubectl-events.yaml":      {true, false, []string{"ClusterRole", "ClusterRoleBinding"}},
		"clusterrole-kubectl-annotations.yaml": {false, true, []string{"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}},
	} {
		objs := kubectlOnly(t, with.events, with.annotations)
		if got := kinds(objs); !slices.Equal(got, with.kinds) {
			t.Errorf("%+v: %q", with, got)
		}
		if file == "" {
			continue
		}
		got, err := yaml.Marshal(one[rbacv1.ClusterRole](t, objs, "ClusterRole").Rules)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, file, got)
	}
}

// S11: who has taken the token of a service that answers people changes nothing of pods and
// workloads but the two annotations of an answer.
func TestAnswersAreFenced(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	cp := controlplane.StartWith(t, controlplane.Extras{Alone: true})
	makeNamespace(t, cp.Client(), namespace, nil)
	makeNamespace(t, cp.Client(), "ml", nil)
	send := chart.To(cp)
	for _, o := range objects(t, values{"kubectl": values{"annotations": true}}) {
		if isKubectls(o) || o.GetKind() == "ServiceAccount" && o.GetNamespace() == namespace {
			if err := send.Create(t, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := cp.Client().CoreV1().ServiceAccounts("ml").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"owner": "ops"}}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}}}
	if _, err := cp.Client().AppsV1().Deployments("ml").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cp.Client().CoreV1().Pods("ml").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: pod}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	its := kubernetes.NewForConfigOrDie(accountConfig(t, cp, namespace, "unpend"))
	patch := map[string]func(string) error{
		"deployment": func(body string) error {
			_, err := its.AppsV1().Deployments("ml").Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		},
		"pod": func(body string) error {
			_, err := its.CoreV1().Pods("ml").Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		},
	}
	const answered = `{"metadata":{"annotations":{"unpend.dev/diagnosis":"waits","unpend.dev/answered":"now"}}}`
	tries := 0
	for what, patch := range patch {
		controlplane.Eventually(t, 20*time.Second, "the fence is up for a "+what, func() (bool, string) {
			tries++ // what came through before is no change any more
			err := patch(fmt.Sprintf(`{"metadata":{"labels":{"mine":"%d"}}}`, tries))
			return err != nil && strings.Contains(err.Error(), "of metadata the service may change annotations only"), fmt.Sprint(err)
		})
		for body, want := range map[string]string{
			`{"metadata":{"annotations":{"owner":"me"}}}`:                 "of annotations the service may change",
			`{"metadata":{"annotations":{"owner":null,"mine":"1"}}}`:      "of annotations the service may change",
			`{"metadata":{"ownerReferences":[],"finalizers":["mine/x"]}}`: "of metadata the service may change annotations only",
		} {
			if err := patch(body); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v", what, body, err)
			}
		}
		if err := patch(answered); err != nil {
			t.Errorf("%s: it may not answer: %v", what, err)
		}
	}
	if err := patch["deployment"](`{"spec":{"replicas":0}}`); err == nil || !strings.Contains(err.Error(), "the service may change annotations only") {
		t.Errorf("replicas: %v", err)
	}
	if err := patch["pod"](`{"spec":{"activeDeadlineSeconds":1}}`); err == nil || !strings.Contains(err.Error(), "the service may change annotations only") {
		t.Errorf("a deadline: %v", err)
	}
}
