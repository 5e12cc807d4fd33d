package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// An entry of resourceClaims that names nothing is proven by the template; the only ResourceClaimTemplate of its
// namespace is what it may name.
func TestClaimsThatAreNotNamed(t *testing.T) {
	named := "gpu"
	const unnamed = "proven: claim that is not named c: its template names no claim: entry c of resourceClaims in its template names neither a ResourceClaim nor a template of one"
	for name, tc := range map[string]struct {
		entry     corev1.PodResourceClaim
		templates []string
		want      string
		near      string
	}{
		"one template":  {corev1.PodResourceClaim{Name: "c"}, []string{"ml/gpu", "other/gpu"}, unnamed, "gpu"},
		"two of them":   {corev1.PodResourceClaim{Name: "c"}, []string{"ml/gpu", "ml/more"}, unnamed, ""},
		"none":          {corev1.PodResourceClaim{Name: "c"}, nil, unnamed, ""},
		"it is named":   {corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: &named}, []string{"ml/gpu"}, "", ""},
		"a claim is it": {corev1.PodResourceClaim{Name: "c", ResourceClaimName: &named}, nil, "", ""},
	} {
		st := &cluster.State{Unread: map[string]string{}}
		for _, full := range tc.templates {
			ns, n, _ := strings.Cut(full, "/")
			st.ClaimTemplates = append(st.ClaimTemplates, &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: n}})
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml"}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{tc.entry}}}
		r := refused(st, pod, "no luck").Refuses()
		if got := toldRefusal(r); got != tc.want || r.Near != tc.near {
			t.Errorf("%s: %q near %q, want %q near %q", name, got, r.Near, tc.want, tc.near)
		}
	}
}

// What validation minds is named by its field, where it names one; what a policy says stands behind the webhook's name.
func TestWordsOfARefusal(t *testing.T) {
	for says, want := range map[string][2]string{
		`Pod "w" is invalid: spec.containers[0].image: Required value`:             {"spec.containers[0].image", ""},
		`Pod "w" is invalid: [spec.a: Required value, spec.b: Required value]`:     {"", ""},
		"admission webhook \"w\" denied the request: [ns]  no\nGPUs for this team": {"", "[ns] no GPUs for this team"},
		"no luck": {"", ""},
	} {
		c := refused(&cluster.State{Unread: map[string]string{}}, &corev1.Pod{}, says)
		if got := [2]string{c.Refuses().Name, c.PolicySays()}; got != want {
			t.Errorf("%s: %q, want %q", says, got, want)
		}
	}
}
