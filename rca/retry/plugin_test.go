package retry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// The device plugin whose log is named is the only one that there is on the node by its DaemonSet's name.
func TestAnotherMakersPlugin(t *testing.T) {
	of := func(kind, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}}}
	}
	for name, k := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"one":            {[]*corev1.Pod{of("DaemonSet", "kube-proxy"), of("DaemonSet", "neuron-device-plugin")}, "neuron-device-plugin"},
		"two":            {[]*corev1.Pod{of("DaemonSet", "sriov-device-plugin"), of("DaemonSet", "neuron-device-plugin")}, ""},
		"none":           {[]*corev1.Pod{of("DaemonSet", "kube-proxy")}, ""},
		"no DaemonSet's": {[]*corev1.Pod{of("ReplicaSet", "neuron-device-plugin")}, ""},
		"nobody's":       {[]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "neuron-device-plugin"}}}, ""},
	} {
		got := ""
		if p := otherPlugin(&view.Node{Pods: k.pods}); p != nil {
			got = p.Name
		}
		if got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}
