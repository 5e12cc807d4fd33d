package parts

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		"by Helm":      {of(metav1.ObjectMeta{Namespace: "gpu", Annotations: map[string]string{"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "ops"}, Labels: map[string]string{"app.kubernetes.io/instance": "dra"}}), "helm upgrade --install mine nvidia/c -n ops"},
	} {
		if got := k.set.Upgrade("c"); got != k.want+tail {
			t.Errorf("%s: %q", name, got)
		}
	}
}
