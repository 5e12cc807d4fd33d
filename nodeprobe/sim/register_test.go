package sim

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// With the device plugin's pod go the devices, and the next pod registers them; the first
// one that is seen has done so before, and one that is mute does not.
func TestPluginRegisters(t *testing.T) {
	r := start(t, 0)
	pods := r.client.CoreV1().Pods("gpu-operator")
	plugin := func(uid types.UID) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "nvidia-device-plugin-" + string(uid), Namespace: "gpu-operator", UID: uid}, Spec: corev1.PodSpec{NodeName: "gpu-1"}}
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.until(string(uid)+" has registered", func() bool { return r.stack.Registered("gpu-1") == uid })
	}
	gone := func(uid string) {
		if err := pods.Delete(t.Context(), "nvidia-device-plugin-"+uid, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.until(uid+" is gone", func() bool { return r.stack.Registered("gpu-1") == "" })
	}
	want := func(offered int64) {
		t.Helper()
		if is := r.offers(); !maps.Equal(is, map[string]int64{"nvidia.com/mig-1g.5gb": offered}) {
			t.Errorf("the node offers %v, want %d", is, offered)
		}
	}
	plugin("a")
	want(7)
	gone("a")
	want(0)
	r.stack.SetFaults("gpu-1", Faults{Mute: true})
	plugin("b")
	want(0)
	gone("b")
	r.stack.SetFaults("gpu-1", Faults{})
	plugin("c")
	want(7)
}
