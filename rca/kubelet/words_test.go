package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// What a kubelet says of claims tells what helps: to wait, to make what is gone, to look where its plugin is.
func TestAKubeletsWordsOfClaims(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}, Spec: corev1.PodSpec{NodeName: "n"}}
	w := view.New(&cluster.State{Pods: []*corev1.Pod{p}, ResourceClaims: []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "there"}}}})
	for says, want := range map[string]string{
		"fetch ResourceClaim away: resourceclaims \"away\" not found":                              "make ResourceClaim ml/away again",
		"fetch ResourceClaim there: resourceclaims \"there\" not found":                            "",
		"fetch ResourceClaim there: resourceclaims \"there\" is forbidden: User":                   "let the kubelet of n read ResourceClaims of namespace ml",
		"ResourceClaim c is being unprepared":                                                      "wait until the kubelet of n has given ResourceClaim c back",
		"old ResourceClaim with same name c and different UID 1 still exists (previous pod force)": "wait until the kubelet of n has given back the earlier ResourceClaim c, or restart",
		"NodePrepareResources skipped 2 ResourceClaims":                                            "see in the log of the driver's plugin on n which claim it leaves out",
		"NodePrepareResources failed: no such device":                                              "",
	} {
		got := ""
		for _, of := range []func(*view.Cluster, *corev1.Pod, string) *Hindrance{gone, unprepares, lingers, leftOut} {
			if h := of(w, p, says); h != nil {
				got += h.Title
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", says, got, want)
		}
	}
}
