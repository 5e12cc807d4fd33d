package parts

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// A chart's release is changed where it is, and made by its own name where there is none.
func TestTheReleaseIsTheOneThatIsThere(t *testing.T) {
	const tail = " --create-namespace --reuse-values "
	of := func(meta metav1.ObjectMeta) *Set { return &Set{DaemonSet: &appsv1.DaemonSet{ObjectMeta: meta}} }
	for name, k := range map[string]struct {
		set  *Set
		want string
	}{
		"none":         {nil, "helm upgrade --install c nvidia/c -n c"},
		"by hand":      {of(metav1.ObjectMeta{Namespace: "kube-system"}), "helm upgrade --install c nvidia/c -n kube-system"},
		"by its label": {of(metav1.ObjectMeta{Namespace: "gpu", Labels: map[string]string{"app.kubernetes.io/instance": "dra"}}), "helm upgrade --install dra nvidia/c -n gpu"},
		"older chart":  {of(metav1.ObjectMeta{Namespace: "gpu", Annotations: map[string]string{"meta.helm.sh/release-name": "mine"}, Labels: map[string]string{"helm.sh/chart": "was-c-v25.3.0-rc.2"}}), "helm upgrade --install mine nvidia/was-c -n gpu"},
		"by Helm":      {of(metav1.ObjectMeta{Namespace: "gpu", Annotations: map[string]string{"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "ops"}, Labels: map[string]string{"app.kubernetes.io/instance": "dra"}}), "helm upgrade --install mine nvidia/c -n ops"},
	} {
		if got := k.set.Upgrade("c"); got != k.want+tail {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A command that changes a release names it as its objects do; RELEASE stands for what nothing names.
func TestReleasesAreNamedAsTheirObjectsSay(t *testing.T) {
	const tail = " --reuse-values "
	ops := metav1.ObjectMeta{Name: "x", Namespace: "gpu", Annotations: map[string]string{"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "ops"}}
	set := &Set{DaemonSet: &appsv1.DaemonSet{ObjectMeta: ops}}
	if got, want := set.Reuse("nvdp/c"), "helm upgrade mine nvdp/c -n ops"+tail; got != want || !set.Named() {
		t.Errorf("%q, want %q", got, want)
	}
	set.Annotations = nil
	if got, want := set.Reuse("nvdp/c"), "helm upgrade RELEASE nvdp/c -n gpu"+tail; got != want || set.Named() {
		t.Errorf("%q, want %q", got, want)
	}
	operator := &appsv1.Deployment{ObjectMeta: ops}
	st := &cluster.State{Deployments: []*appsv1.Deployment{operator}}
	if got, want := ReuseOperator(view.New(st), "there"), "helm upgrade gpu-operator nvidia/gpu-operator -n there"+tail; got != want {
		t.Errorf("no operator: %q, want %q", got, want)
	}
	operator.Spec.Template.Labels, operator.Spec.Template.Spec.Containers = map[string]string{"app": operatorName}, []corev1.Container{{Name: operatorName}}
	if got, want := ReuseOperator(view.New(st), "there"), "helm upgrade mine nvidia/gpu-operator -n ops"+tail; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
